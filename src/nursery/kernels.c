/* The processes in a nursery's sandboxes. The first kernel comes with its box. Each further one:
 * N_KERNEL → init is asked for its ends (I_MORE; the answers come in order, so one at a time) → a
 * zygote forks it (Z_FORK) → N_KERNEL_MADE. When it ends, its zygote says so, or, when that is
 * gone, we reap it. What happens to a further one is nothing to the box. */

#include "nursery/nursery.h"

#include "base/buf.h"
#include "base/fd.h"
#include "init/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define HAND_UP 500 /* see netpool.c: what stays is out of the way of new inits */

static void tell_failed(struct nursery *n, uint64_t id, uint32_t number, const char *why) {
    struct wire_out o;
    wire_begin(&o, WIRE_N_KERNEL_FAILED);
    wire_put_u64(&o, id);
    wire_put_u32(&o, number);
    wire_put_str(&o, why);
    chan_send(&n->warden, &o);
}

static struct kernel *find(struct box *b, uint32_t number) {
    for (struct kernel *k = b->kernels; k; k = k->next) {
        if (k->number == number)
            return k;
    }
    return NULL;
}

struct kernel *kernels_find(struct nursery *n, uint64_t id, uint32_t number) {
    struct box *b = boxes_find(n, id);
    return b ? find(b, number) : NULL;
}

void kernels_close(struct kernel *k) {
    fd_close_all(k->ours, sizeof k->ours / sizeof *k->ours);
    fd_close_all(k->ends, sizeof k->ends / sizeof *k->ends);
    fd_close_all(k->procs, k->nprocs);
    k->nprocs = 0;
}

static void kernel_free(struct kernel *k) {
    for (struct kernel **p = &k->box->kernels; *p; p = &(*p)->next) {
        if (*p == k) {
            *p = k->next;
            break;
        }
    }
    kernels_close(k);
    free(k);
}

void kernels_free(struct box *b) {
    while (b->kernels)
        kernel_free(b->kernels);
}

struct kernel *kernels_add(struct box *b, uint32_t number, struct wire_in *in) {
    bool first = b->state == BOX_MAKING;
    struct kernel *k = xcalloc(1, sizeof *k);
    k->box = b;
    k->number = number;
    k->state = first ? KERNEL_ASKED : KERNEL_WANTED;
    k->nours = first ? SANDBOX_SNMP : KERNEL_OWNER_FDS;
    memset(k->ours, 0xff, sizeof k->ours);
    memset(k->ends, 0xff, sizeof k->ends);
    while (in->fd_at < in->nfds && k->nprocs < MAX_PROCS)
        k->procs[k->nprocs++] = wire_take_fd(in);
    struct kernel **end = &b->kernels;
    while (*end)
        end = &(*end)->next;
    *end = k;
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
    if (find(b, number))
        return "a process of this sandbox has this number";
    for (const struct kernel *k = b->kernels; k; k = k->next)
        n++;
    return n < PROCS_MAX ? NULL : "the sandbox has as many kernels and commands as it may have";
}

void kernels_more(struct nursery *n, struct wire_in *in) {
    uint64_t id = wire_get_u64(in);
    uint32_t number = wire_get_u32(in);
    struct box *b = boxes_find(n, id);
    const char *why = refusal(b, number);
    if (why) {
        tell_failed(n, id, number, why);
        return;
    }
    kernels_add(b, number, in);
    ask_init(b);
}

bool kernels_ends(struct box *b, struct wire_in *in) {
    struct kernel *k = oldest(b, KERNEL_ASKED);
    unsigned nends = sizeof k->ends / sizeof *k->ends;
    if (!k)
        return false;
    if (in->type == WIRE_I_BROKEN) {
        kernels_failed(k, wire_get_str(in, ERR_TEXT_MAX));
    } else if (in->type == WIRE_I_READY && in->nfds == k->nours + nends) {
        for (unsigned i = 0; i < k->nours; i++)
            k->ours[i] = wire_take_fd(in);
        for (unsigned i = 0; i < nends; i++)
            k->ends[i] = wire_take_fd(in);
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
    tell_failed(b->nursery, b->id, k->number, why);
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

static void tell_made(struct kernel *k, bool first) {
    struct box *b = k->box;
    struct wire_out o;
    wire_begin(&o, first ? WIRE_N_MADE : WIRE_N_KERNEL_MADE);
    wire_put_u64(&o, b->id);
    if (!first)
        wire_put_u32(&o, k->number);
    for (unsigned i = 0; i < k->nours; i++)
        wire_put_fd(&o, k->ours[i]);
    if (first) {
        wire_put_fd(&o, b->net.tables[NET_SNMP]);
        wire_put_fd(&o, b->net.tables[NET_SNMP6]);
    }
    chan_send(&b->nursery->warden, &o);
}

void kernels_forked(struct kernel *k, pid_t pid) {
    struct box *b = k->box;
    k->pid = pid;
    if (k->state != KERNEL_FORKING || b->state == BOX_DYING)
        return;
    k->state = KERNEL_LIVE;
    bool first = b->state == BOX_MAKING;
    tell_made(k, first);
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
        wire_begin(&o, WIRE_N_EXITED);
        wire_put_u64(&o, b->id);
        wire_put_u32(&o, k->number);
        wire_put_u32(&o, (uint32_t)status);
        chan_send(&b->nursery->warden, &o);
    }
    kernel_free(k);
}
