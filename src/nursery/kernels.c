/* The processes in a nursery's sandboxes. The first kernel comes with its box. Each further one:
 * N_KERNEL → init is asked for its ends (I_MORE; the answers come in order, so one at a time) → a
 * zygote forks it (Z_FORK) → N_KERNEL_MADE. When it ends, its zygote says so, or, when that is
 * gone, we reap it. What happens to a further one is nothing to the box. */

#include "nursery/kernels.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "init/procs.h"
#include "nursery/boxes.h"
#include "nursery/zygotes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HAND_UP 500 /* see netpool.c: what stays is out of the way of new inits */

static void kernel_tell_failed(struct nursery *n, uint64_t id, uint32_t number, const char *why) {
    struct wire_out o;
    n_kernel_failed_put(&o, &(struct n_kernel_failed){.sandbox = id, .number = number, .why = why});
    chan_send(&n->warden, &o);
}

static struct kernel *find_kernel(struct box *b, uint32_t number) {
    for (struct kernel *k = b->kernels; k; k = k->next) {
        if (k->number == number)
            return k;
    }
    return NULL;
}

struct kernel *kernels_find(struct nursery *n, uint64_t id, uint32_t number) {
    struct box *b = boxes_find(n, id);
    return b ? find_kernel(b, number) : NULL;
}

void kernels_close(struct kernel *k) {
    fd_close_all(k->ours, sizeof k->ours / sizeof *k->ours);
    fd_close_all(k->ends, sizeof k->ends / sizeof *k->ends);
    fd_close_all(k->procs, k->nprocs);
    k->nprocs = 0;
}

static void kernel_free(struct kernel *k) {
    LIST_REMOVE(&k->box->kernels, k, next);
    kernels_close(k);
    free(k);
}

void kernels_free(struct box *b) {
    while (b->kernels)
        kernel_free(b->kernels);
}

struct kernel *kernels_add(struct box *b, uint32_t number, const struct wire_fds *procs,
                           struct wire_in *in) {
    bool first = b->state == BOX_MAKING;
    struct kernel *k = xcalloc(1, sizeof *k);
    k->box = b;
    k->number = number;
    k->state = first ? KERNEL_ASKED : KERNEL_WANTED;
    k->nours = first ? SANDBOX_SNMP : KERNEL_OWNER_FDS;
    memset(k->ours, 0xff, sizeof k->ours);
    memset(k->ends, 0xff, sizeof k->ends);
    k->nprocs = procs->n;
    wire_keep_all(in, procs->fd, procs->n, k->procs);
    LIST_APPEND(&b->kernels, k, next);
    return k;
}

static struct kernel *oldest(struct box *b, enum kernel_state state) {
    for (struct kernel *k = b->kernels; k; k = k->next) {
        if (k->state == state)
            return k;
    }
    return NULL;
}

/* The socket has room for it: no more than one is ever on its way. Where init is gone, the box is
 * about to go as well, and that is told. */
static void ask_init(struct box *b) {
    struct kernel *k = oldest(b, KERNEL_ASKED) ? NULL : oldest(b, KERNEL_WANTED);
    if (!k)
        return;
    struct wire_out o;
    struct err e;
    wire_begin(&o, WIRE_I_MORE);
    k->state = KERNEL_ASKED;
    wire_send(b->hand, &o, &e);
}

/* Why there can be no such process; NULL if there can. */
static const char *refusal(struct box *b, uint32_t number) {
    unsigned n = 0;
    if (!b || b->state != BOX_LIVE || b->hand < 0)
        return "there is no such live sandbox";
    if (find_kernel(b, number))
        return "a process of this sandbox has this number";
    for (const struct kernel *k = b->kernels; k; k = k->next)
        n++;
    return n < PROCS_MAX ? NULL : "the sandbox has as many kernels and commands as it may have";
}

void kernels_more(struct nursery *n, struct box *b, const struct n_kernel *m, struct wire_in *in) {
    const char *why = refusal(b, m->number);
    if (why) {
        kernel_tell_failed(n, m->sandbox, m->number, why);
        return;
    }
    kernels_add(b, m->number, &m->procs, in);
    ask_init(b);
}

static bool take_ends(struct kernel *k, struct wire_in *in) {
    struct i_ready m;
    struct err e;
    if (i_ready_get(in, &m, &e) < 0 || m.ours.n != k->nours || m.ends.n != KERNEL_END_FDS)
        return false;
    wire_keep_all(in, m.ours.fd, m.ours.n, k->ours);
    wire_keep_all(in, m.ends.fd, m.ends.n, k->ends);
    return true;
}

bool kernels_ends(struct box *b, struct wire_in *in) {
    struct kernel *k = oldest(b, KERNEL_ASKED);
    struct i_broken broken;
    struct err e;
    if (!k)
        return false;
    if (i_broken_get(in, &broken, &e) == 0) {
        kernels_failed(k, broken.why);
    } else if (take_ends(k, in)) {
        k->state = KERNEL_WAITING;
        k->turn = b->nursery->turns++;
        zygotes_dispatch(b->nursery);
    } else {
        return false;
    }
    ask_init(b);
    return true;
}

void kernels_failed(struct kernel *k, const char *why) {
    struct box *b = k->box;
    if (b->state != BOX_LIVE) {
        boxes_failed(b->nursery, b, why);
        return;
    }
    kernel_tell_failed(b->nursery, b->id, k->number, why);
    kernel_free(k);
    ask_init(b);
}

/* In a live profile more kernels may be asked for; nobody else needs init again. */
static void keep_hand(struct box *b) {
    struct nursery *n = b->nursery;
    struct err e;
    loop_unwatch(n->loop, &b->watch);
    int up = n->profile->live ? fcntl(b->hand, F_DUPFD_CLOEXEC, HAND_UP) : -1;
    fd_close(&b->hand);
    b->hand = up;
    if (up >= 0 && loop_watch(n->loop, &b->watch, up, EPOLLIN, &e) < 0)
        fd_close(&b->hand);
}

static void kernel_tell_made(const struct kernel *k) {
    struct n_kernel_made m = {.sandbox = k->box->id, .number = k->number};
    struct wire_out o;
    memcpy(m.fds, k->ours, sizeof m.fds);
    n_kernel_made_put(&o, &m);
    chan_send(&k->box->nursery->warden, &o);
}

/* The sandbox is there with its first kernel. */
static void box_tell_made(const struct kernel *k) {
    struct box *b = k->box;
    struct n_made m = {.sandbox = b->id};
    struct wire_out o;
    _Static_assert(sizeof k->ours == SANDBOX_SNMP * sizeof(int), "those that init makes");
    memcpy(m.fds, k->ours, sizeof k->ours);
    m.fds[SANDBOX_SNMP] = b->net.tables[NET_SNMP];
    m.fds[SANDBOX_SNMP6] = b->net.tables[NET_SNMP6];
    n_made_put(&o, &m);
    chan_send(&b->nursery->warden, &o);
}

void kernels_forked(struct kernel *k, pid_t pid) {
    struct box *b = k->box;
    k->pid = pid;
    if (k->state != KERNEL_FORKING || b->state == BOX_DYING)
        return;
    k->state = KERNEL_LIVE;
    bool first = b->state == BOX_MAKING;
    if (first)
        box_tell_made(k);
    else
        kernel_tell_made(k);
    kernels_close(k);
    if (!first)
        return;
    b->state = BOX_LIVE;
    b->told = true;
    keep_hand(b);
}

void kernels_exited(struct kernel *k, int status) {
    struct box *b = k->box;
    if (b->state != BOX_DYING) { /* else it was told to */
        struct wire_out o;
        n_exited_put(&o, &(struct n_exited){b->id, k->number, (uint32_t)status});
        chan_send(&b->nursery->warden, &o);
    }
    kernel_free(k);
}
