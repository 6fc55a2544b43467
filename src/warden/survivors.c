/* Live sandboxes outlive the server: of each the warden holds a second copy of every descriptor
 * that the server has, from the moment it is made, and, once the server has said W_KEEP, its
 * journal, a memfd that only servers read and write. When the server dies, what it kept goes on,
 * and the next server gets all of it. What a kernel's descriptors lead to goes with the kernel, but
 * one that ended while no server was there waits, for its last words. */

#include "warden/survivors.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "warden/groups.h"
#include "warden/slots.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Which of a sandbox's descriptors are its first kernel's, in the order of W_KERNEL_MADE. */
static const int of_kernel[KERNEL_OWNER_FDS] = {SANDBOX_CTL, SANDBOX_STDIN, SANDBOX_STDOUT,
                                                SANDBOX_STDERR};

#define SURVIVOR_STDIN 1

struct survivor_kernel {
    struct survivor_kernel *next;
    uint32_t number;
    int fds[KERNEL_OWNER_FDS]; /* stdin is -1 when it is shut */
    bool exited;               /* while no server was there, or it is the first */
    uint32_t status;
};

struct survivor {
    int journal;           /* -1: it ends with its server */
    int fds[SANDBOX_FDS_]; /* less those of the first kernel */
    struct survivor_kernel *kernels;
};

static void drop_kernel(struct survivor_kernel **at) {
    struct survivor_kernel *k = LIST_POP(at, next);
    fd_close_all(k->fds, KERNEL_OWNER_FDS);
    free(k);
}

static struct survivor_kernel **find_kernel(struct survivor *v, uint32_t number) {
    struct survivor_kernel **at = &v->kernels;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static struct survivor_kernel *add_kernel(struct survivor *v, uint32_t number) {
    struct survivor_kernel **at = find_kernel(v, number), *k = xcalloc(1, sizeof *k);
    if (*at)
        drop_kernel(at);
    k->number = number;
    LIST_PUSH(&v->kernels, k, next);
    return k;
}

void survivors_made(struct slot *s, const struct n_made *m, struct wire_in *in) {
    struct survivor *v = xcalloc(1, sizeof *v);
    v->journal = -1;
    wire_keep_all(in, m->fds, SANDBOX_FDS_, v->fds);
    struct survivor_kernel *first = add_kernel(v, 0);
    for (int i = 0; i < KERNEL_OWNER_FDS; i++)
        first->fds[i] = fd_take(&v->fds[of_kernel[i]]);
    survivors_free(s);
    s->survivor = v;
}

void survivors_kernel_made(struct slot *s, const struct n_kernel_made *m, struct wire_in *in) {
    wire_keep_all(in, m->fds, KERNEL_OWNER_FDS, add_kernel(s->survivor, m->number)->fds);
}

struct w_kernel_made survivors_kernel(const struct slot *s, uint32_t number, const int *fds) {
    const struct cgroup_slot *own = groups_find(s, number);
    struct w_kernel_made m = {.sandbox = s->sandbox, .number = number};
    memcpy(m.fds, fds, sizeof m.fds);
    if (own)
        m.knobs = slots_knobs(own);
    return m;
}

void survivors_shut(struct slot *s, uint32_t number) {
    struct survivor_kernel *k = s->survivor ? *find_kernel(s->survivor, number) : NULL;
    if (k)
        fd_close(&k->fds[SURVIVOR_STDIN]);
}

/* A server that is told of it may die before it has written that down. The next one sees which of
 * the others are missing, but of the first it gets descriptors in any case: it is told again. */
void survivors_exited(struct slot *s, uint32_t number, uint32_t status, bool heard) {
    struct survivor_kernel **at = s->survivor ? find_kernel(s->survivor, number) : NULL;
    if (!at || !*at)
        return;
    bool is_over = heard || s->survivor->journal < 0;
    if (is_over && number != 0) {
        drop_kernel(at);
        return;
    }
    if (is_over)
        fd_close_all((*at)->fds, KERNEL_OWNER_FDS);
    (*at)->exited = true;
    (*at)->status = status;
}

int survivors_keep(struct slot *s, int *journal, struct err *e) {
    if (fcntl(*journal, F_GET_SEALS) < 0)
        return err_sys(e, "a journal is a memfd");
    fd_close(&s->survivor->journal);
    s->survivor->journal = fd_take(journal);
    return 0;
}

bool survivors_outlives(const struct slot *s) {
    return s->survivor && s->survivor->journal >= 0;
}

void survivors_free(struct slot *s) {
    struct survivor *v = s->survivor;
    if (!v)
        return;
    s->survivor = NULL;
    while (v->kernels)
        drop_kernel(&v->kernels);
    fd_close(&v->journal);
    fd_close_all(v->fds, SANDBOX_FDS_);
    free(v);
}

/* ---- for the next server ---- */

static void give_kernel(struct warden *w, const struct slot *s, const struct survivor_kernel *k,
                        int shut) {
    struct wire_out o;
    if (k->number != 0) {
        int fds[KERNEL_OWNER_FDS];
        for (int i = 0; i < KERNEL_OWNER_FDS; i++)
            fds[i] = k->fds[i] < 0 ? shut : k->fds[i];
        const struct w_kernel_made m = survivors_kernel(s, k->number, fds);
        w_kernel_made_put(&o, &m);
        chan_send(&w->server_chan, &o);
    }
    if (k->exited) {
        w_exited_put(&o, &(struct w_exited){s->sandbox, k->number, k->status});
        chan_send(&w->server_chan, &o);
    }
}

static void give_sandbox(struct warden *w, struct slot *s, int shut) {
    struct survivor *v = s->survivor;
    const struct survivor_kernel *first = *find_kernel(v, 0);
    struct w_kept m = {.sandbox = s->sandbox,
                       .profile = s->nursery->profile,
                       .slot = (uint32_t)(s - w->slots),
                       .version = s->nursery->chan.version,
                       .journal = v->journal,
                       .knobs = slots_knobs(&s->cgroup)};
    for (const struct survivor_kernel *k = v->kernels; k; k = k->next)
        m.kernels += k->number != 0;
    memcpy(m.fds, v->fds, sizeof m.fds);
    for (int i = 0; i < KERNEL_OWNER_FDS; i++)
        m.fds[of_kernel[i]] = first && first->fds[i] >= 0 ? first->fds[i] : shut;
    struct wire_out o;
    w_kept_put(&o, &m);
    chan_send(&w->server_chan, &o);
    s->known = true;
}

static void give_slot(struct warden *w, struct slot *s, int shut) {
    if (shut < 0) { /* no descriptor is left, not even for this pair */
        s->orphan = true;
        slots_end(s);
        return;
    }
    give_sandbox(w, s, shut);
    for (struct survivor_kernel **at = &s->survivor->kernels; *at;) {
        give_kernel(w, s, *at, shut);
        if ((*at)->exited && (*at)->number != 0)
            drop_kernel(at);
        else
            at = &(*at)->next;
    }
}

void survivors_give(struct warden *w) {
    int pair[2] = {-1, -1}; /* stands in for descriptors that are closed: its other end is shut */
    struct err e;
    wire_pair(pair, &e);
    fd_close(&pair[1]);
    for (unsigned i = 0; i < w->nslots; i++) {
        struct slot *s = &w->slots[i];
        if (s->state == SLOT_USED && !s->orphan && survivors_outlives(s))
            give_slot(w, s, pair[0]);
    }
    fd_close(&pair[0]);
}
