/* The sandboxes of a nursery. Life of a box: N_MAKE → a clone becomes its init (init/init.c), which
 * sends its descriptors (I_READY) → a zygote forks a kernel into it (Z_FORK) → N_MADE to the
 * warden, and the nursery holds nothing of it but init's pidfd, and in a live profile the socket to
 * init, through which more kernels come (kernels.c). N_END kills init, and with it all that is in
 * the pid namespace; when init can be reaped, all of it is gone (N_GONE). */

#include "nursery/boxes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "init/init.h"
#include "nursery/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void box_tell_gone(struct nursery *n, uint64_t id) {
    struct wire_out o;
    n_gone_put(&o, &(struct n_gone){.sandbox = id});
    chan_send(&n->warden, &o);
}

struct box *boxes_find(struct nursery *n, uint64_t id) {
    for (struct box *b = n->boxes; b; b = b->next) {
        if (b->id == id)
            return b;
    }
    return NULL;
}

static void close_transit(struct box *b) {
    loop_unwatch(b->nursery->loop, &b->watch);
    fd_close(&b->hand);
    fd_close(&b->born);
    for (struct kernel *k = b->kernels; k; k = k->next)
        kernels_close(k);
}

void boxes_end(struct box *b) {
    close_transit(b);
    if (b->state == BOX_DYING)
        return;
    b->state = BOX_DYING;
    syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

void boxes_failed(struct nursery *n, struct box *b, const char *why) {
    if (!b->told) {
        struct wire_out o;
        n_failed_put(&o, &(struct n_failed){.sandbox = b->id, .why = why});
        chan_send(&n->warden, &o);
        b->told = true;
    }
    boxes_end(b);
}

static void box_on_init(struct watch *w, uint32_t events) {
    struct box *b = w->arg;
    struct err e;
    struct wire_in in;
    (void)events;
    in.nfds = in.fd_at = 0;
    enum wire_got got = wire_recv(b->hand, &in, &e);
    if (got == WIRE_NONE)
        return;
    if (got == WIRE_GOT) {
        bool good = kernels_ends(b, &in);
        wire_in_done(&in);
        fd_close(&b->born);
        if (good && !b->nursery->profile->live) /* init shuts it when it has the listener */
            loop_unwatch(b->nursery->loop, &b->watch);
        if (good)
            return;
    }
    wire_in_done(&in);
    if (b->state == BOX_MAKING)
        boxes_failed(b->nursery, b, "init ended before it was ready");
    else
        loop_unwatch(b->nursery->loop, &b->watch); /* it will be reaped */
}

/* In the child, which still shares the nursery's table of descriptors: it gets one of its own, with
 * nothing in it that it would have to close but a few low numbers (see netpool.c). */
static _Noreturn void become_init(struct init_plan *plan, int hand) {
    int kept[1 + PROCS_FDS + MACHINE_FILES] = {hand}, top = hand;
    unsigned n = 1 + plan->nprocs;
    memcpy(kept + 1, plan->procs, plan->nprocs * sizeof *kept);
    for (int i = 0; i < MACHINE_FILES; i++) {
        if (plan->machine[i] >= 0)
            kept[n++] = plan->machine[i];
    }
    for (unsigned i = 0; i < n; i++)
        top = kept[i] > top ? kept[i] : top;
    if (close_range((unsigned)top + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        _exit(1);
    for (unsigned i = 0; i < n; i++) { /* out of the way of each other */
        if ((kept[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, top + 1)) < 0)
            _exit(1);
    }
    for (unsigned i = 0; i < n; i++) {
        if (dup3(kept[i], 3 + (int)i, O_CLOEXEC) < 0)
            _exit(1);
        kept[i] = 3 + (int)i;
    }
    close_range(3 + n, ~0u, 0);
    plan->procs = kept + 1;
    for (int i = 0, at = 1 + (int)plan->nprocs; i < MACHINE_FILES; i++) {
        if (plan->machine[i] >= 0)
            plan->machine[i] = kept[at++];
    }
    init_main(plan, 3);
}

static int box_start(struct nursery *n, struct box *b, struct err *e) {
    int pair[2];
    *b->used = 0;
    struct limits born = config_born(&n->config, n->profile);
    /* SECURITY: a tmpfs of size 0 has no bound. */
    if (!born.disk_mb)
        return err_set(e, EINVAL, "profile %s: its sandboxes have no size of disk",
                       n->profile->name);
    if (netpool_enter(&n->nets, &b->net, e) < 0 || wire_pair(pair, e) < 0)
        return -1;
    struct init_plan plan = {.config = &n->config,
                             .limits = born,
                             .uid = b->uid,
                             .live = n->profile->live,
                             .used = b->used,
                             .mounts = n->mounts.items,
                             .nmounts = n->mounts.n,
                             .allowed = n->mounts.allowed,
                             .nallowed = n->mounts.nallowed,
                             .has_trees = n->has_trees,
                             .procs = b->kernels->procs,
                             .nprocs = b->kernels->nprocs,
                             .machine = {n->machine[0], n->machine[1]}};
    _Static_assert(MACHINE_FILES == 2, "all of them");
    unsigned long flags = SIGCHLD | CLONE_PIDFD | CLONE_FILES | CLONE_NEWPID | CLONE_NEWNS |
                          CLONE_NEWIPC | CLONE_NEWUTS;
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, &b->pidfd, NULL, NULL);
    if (pid == 0)
        become_init(&plan, pair[1]);
    b->hand = pair[0];
    b->born = pair[1]; /* the child has it only while it is open here */
    if (pid < 0)
        return err_sys(e, "make a sandbox's namespaces");
    b->init = pid;
    return loop_watch(n->loop, &b->watch, b->hand, EPOLLIN, e);
}

static void box_free(struct nursery *n, struct box *b) {
    LIST_REMOVE(&n->boxes, b, next);
    close_transit(b);
    kernels_free(b);
    fd_close(&b->pidfd);
    /* Through a directory of the host a descriptor can get into another sandbox. */
    netpool_give_back(&n->nets, &b->net, *b->used || n->mounts.n > 0);
    free(b);
}

static bool uid_is_used(const struct nursery *n, uint32_t uid) {
    const struct box *b = n->boxes;
    while (b && b->uid != uid)
        b = b->next;
    return b != NULL;
}

/* The one that was used longest ago: the kernel counts descriptors in messages for a uid, until
 * they are read, and a neighbour may keep them long after their sandbox. Slots are used again at
 * once, and there are enough ids for all of them. */
static uint32_t next_uid(struct nursery *n, uint32_t slot) {
    for (uint32_t tries = 1; tries < n->ids; tries++) {
        n->last_uid = n->last_uid % (n->ids - 1) + 1;
        if (!uid_is_used(n, n->last_uid))
            return n->last_uid;
    }
    return slot + 1;
}

void boxes_make(struct nursery *n, const struct n_make *m, struct wire_in *in) {
    struct box *b = xcalloc(1, sizeof *b);
    *b = (struct box){.nursery = n,
                      .state = BOX_MAKING,
                      .id = m->sandbox,
                      .uid = n->single ? 0 : next_uid(n, m->slot),
                      .pidfd = -1,
                      .net = {.ns = -1},
                      .hand = -1,
                      .born = -1,
                      .next = n->boxes};
    b->watch = (struct watch){.fd = -1, .fn = box_on_init, .arg = b};
    b->used = &n->used[m->slot < config_places(&n->config) ? m->slot : 0];
    kernels_add(b, 0, &m->procs, in);
    n->boxes = b;
    struct err e;
    if (box_start(n, b, &e) == 0)
        return;
    boxes_failed(n, b, e.text);
    if (b->init <= 0) {
        box_tell_gone(n, b->id);
        box_free(n, b);
    }
}

bool boxes_reaped(struct nursery *n, pid_t pid, int status) {
    for (struct box *b = n->boxes; b; b = b->next) {
        for (struct kernel *k = b->kernels; k; k = k->next) {
            if (k->pid == pid) { /* its zygote is gone, so it is our child now */
                kernels_exited(k, status);
                return true;
            }
        }
        if (b->init == pid) {
            if (!b->told)
                boxes_failed(n, b, "init died");
            box_tell_gone(n, b->id);
            box_free(n, b);
            return true;
        }
    }
    return false;
}
