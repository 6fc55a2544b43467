/* Live sandboxes outlive the server: of each the warden holds a second copy of every descriptor
 * that the server has, from the moment it is made, and, once the server has said W_KEEP, its
 * journal, a memfd that only servers read and write. When the server dies, what it kept goes on,
 * and the next server gets all of it. What a kernel's descriptors lead to goes with the kernel, but
 * one that ended while no server was there waits, for its last words. */

#include "warden/warden.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Which of a sandbox's descriptors are its first kernel's, in the order of W_KERNEL_MADE. */
static const int of_kernel[KERNEL_OWNER_FDS] = {SANDBOX_CTL, SANDBOX_STDIN, SANDBOX_STDOUT,
                                                SANDBOX_STDERR};

#define KEPT_STDIN 1

struct kept_kernel {
    struct kept_kernel *next;
    uint32_t number;
    int fds[KERNEL_OWNER_FDS]; /* stdin is -1 when it is shut */
    bool exited;               /* while no server was there, or it is the first */
    uint32_t status;
};

struct kept {
    int journal;           /* -1: it ends with its server */
    int fds[SANDBOX_FDS_]; /* less those of the first kernel */
    struct kept_kernel *kernels;
};

static void drop_kernel(struct kept_kernel **at) {
    struct kept_kernel *k = *at;
    *at = k->next;
    fd_close_all(k->fds, KERNEL_OWNER_FDS);
    free(k);
}

static struct kept_kernel **find(struct kept *h, uint32_t number) {
    struct kept_kernel **at = &h->kernels;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static struct kept_kernel *add_kernel(struct kept *h, uint32_t number) {
    struct kept_kernel **at = find(h, number), *k = xcalloc(1, sizeof *k);
    if (*at)
        drop_kernel(at);
    k->number = number;
    k->next = h->kernels;
    h->kernels = k;
    return k;
}

void kept_made(struct slot *s, struct wire_in *in) {
    struct kept *h = xcalloc(1, sizeof *h);
    h->journal = -1;
    for (int i = 0; i < SANDBOX_FDS_; i++)
        h->fds[i] = wire_take_fd(in);
    struct kept_kernel *first = add_kernel(h, 0);
    for (int i = 0; i < KERNEL_OWNER_FDS; i++)
        first->fds[i] = fd_take(&h->fds[of_kernel[i]]);
    kept_free(s);
    s->kept = h;
}

void kept_kernel_made(struct slot *s, uint32_t number, struct wire_in *in) {
    struct kept_kernel *k = add_kernel(s->kept, number);
    for (int i = 0; i < KERNEL_OWNER_FDS; i++)
        k->fds[i] = wire_take_fd(in);
}

void kept_put_knobs(const struct slot *s, uint32_t number, struct wire_out *o) {
    const struct cgroup_slot *own = groups_find(s, number);
    for (unsigned i = 0; own && i < own->nknobs; i++)
        wire_put_fd(o, own->knobs[i]);
}

void kept_shut(struct slot *s, uint32_t number) {
    struct kept_kernel *k = s->kept ? *find(s->kept, number) : NULL;
    if (k)
        fd_close(&k->fds[KEPT_STDIN]);
}

/* A server that is told of it may die before it has written that down. The next one sees which of
 * the others are missing, but of the first it gets descriptors in any case: it is told again. */
void kept_exited(struct slot *s, uint32_t number, uint32_t status, bool heard) {
    struct kept_kernel **at = s->kept ? find(s->kept, number) : NULL;
    if (!at || !*at)
        return;
    bool is_over = heard || s->kept->journal < 0;
    if (is_over && number != 0) {
        drop_kernel(at);
        return;
    }
    if (is_over)
        fd_close_all((*at)->fds, KERNEL_OWNER_FDS);
    (*at)->exited = true;
    (*at)->status = status;
}

int kept_keep(struct slot *s, int *journal, struct err *e) {
    if (fcntl(*journal, F_GET_SEALS) < 0)
        return err_sys(e, "a journal is a memfd");
    fd_close(&s->kept->journal);
    s->kept->journal = fd_take(journal);
    return 0;
}

bool kept_outlives(const struct slot *s) {
    return s->kept && s->kept->journal >= 0;
}

void kept_free(struct slot *s) {
    struct kept *h = s->kept;
    if (!h)
        return;
    s->kept = NULL;
    while (h->kernels)
        drop_kernel(&h->kernels);
    fd_close(&h->journal);
    fd_close_all(h->fds, SANDBOX_FDS_);
    free(h);
}

/* ---- for the next server ---- */

static void put_kernel(struct warden *w, const struct slot *s, const struct kept_kernel *k,
                       int shut) {
    struct wire_out o;
    if (k->number != 0) {
        wire_begin(&o, WIRE_W_KERNEL_MADE);
        wire_put_u64(&o, s->sandbox);
        wire_put_u32(&o, k->number);
        for (int i = 0; i < KERNEL_OWNER_FDS; i++)
            wire_put_fd(&o, k->fds[i] < 0 ? shut : k->fds[i]);
        kept_put_knobs(s, k->number, &o);
        chan_send(&w->server_chan, &o);
    }
    if (k->exited) {
        wire_begin(&o, WIRE_W_EXITED);
        wire_put_u64(&o, s->sandbox);
        wire_put_u32(&o, k->number);
        wire_put_u32(&o, k->status);
        chan_send(&w->server_chan, &o);
    }
}

static void put_sandbox(struct warden *w, struct slot *s, int shut) {
    struct kept *h = s->kept;
    const struct kept_kernel *first = *find(h, 0);
    uint32_t more = 0;
    for (const struct kept_kernel *k = h->kernels; k; k = k->next)
        more += k->number != 0;
    int fds[SANDBOX_FDS_];
    memcpy(fds, h->fds, sizeof fds);
    for (int i = 0; i < KERNEL_OWNER_FDS; i++)
        fds[of_kernel[i]] = first && first->fds[i] >= 0 ? first->fds[i] : shut;
    struct wire_out o;
    wire_begin(&o, WIRE_W_KEPT);
    wire_put_u64(&o, s->sandbox);
    wire_put_u32(&o, s->nursery->profile);
    wire_put_u32(&o, (uint32_t)(s - w->slots));
    wire_put_u32(&o, s->cgroup.nknobs);
    wire_put_u32(&o, more);
    wire_put_fd(&o, h->journal);
    for (int i = 0; i < SANDBOX_FDS_; i++)
        wire_put_fd(&o, fds[i]);
    for (unsigned i = 0; i < s->cgroup.nknobs; i++)
        wire_put_fd(&o, s->cgroup.knobs[i]);
    chan_send(&w->server_chan, &o);
    s->known = true;
}

static void give(struct warden *w, struct slot *s, int shut) {
    if (shut < 0) { /* out of descriptors, and so is everybody soon */
        s->orphan = true;
        slots_end(s);
        return;
    }
    put_sandbox(w, s, shut);
    for (struct kept_kernel **at = &s->kept->kernels; *at;) {
        put_kernel(w, s, *at, shut);
        if ((*at)->exited && (*at)->number != 0)
            drop_kernel(at);
        else
            at = &(*at)->next;
    }
}

void kept_give(struct warden *w) {
    int pair[2] = {-1, -1}; /* in place of what is closed: an end that is shut */
    struct err e;
    wire_pair(pair, &e);
    fd_close(&pair[1]);
    for (unsigned i = 0; i < w->config.max_sandboxes; i++) {
        struct slot *s = &w->slots[i];
        if (s->state == SLOT_USED && !s->orphan && kept_outlives(s))
            give(w, s, pair[0]);
    }
    fd_close(&pair[0]);
}
