/* See requests.h. The table says in which stage of a sandbox a request about it is allowed.
 * Requests cross with what happens meanwhile: one for a sandbox that has just ended, or that the
 * server has given up itself, is no fault and does nothing. The number of a sandbox that the server
 * was never told of is a guess. */

#include "warden/requests.h"

#include "base/fd.h"
#include "warden/groups.h"
#include "warden/nurseries.h"
#include "warden/server.h"
#include "warden/slots.h"
#include "warden/survivors.h"
#include "wire/codec.h"

/* Those that name a sandbox begin with its number. */
union request {
    uint64_t sandbox;
    struct w_make make;
    struct w_end end;
    struct w_lost lost;
    struct w_kernel kernel;
    struct w_left left;
    struct w_shut shut;
    struct w_keep keep;
};

/* One request under way; `slot` is NULL for STAGE_NONE. */
struct asked {
    struct warden *warden;
    struct slot *slot;
    enum slot_stage stage;
    const union request *m;
    struct wire_in *in;
};

static bool request_make(const struct asked *a) {
    struct warden *w = a->warden;
    struct err e;
    uint32_t profile = a->m->make.profile;
    if (profile >= w->config.nprofiles)
        return false;
    struct nursery_child *n = w->nurseries[profile];
    if (!n || n->chan.gone || n->state == PROFILE_BROKEN) {
        const char *why = "the nursery is restarting";
        if (!n)
            server_without_nursery(w, profile, &why);
        else if (n->state == PROFILE_BROKEN)
            why = n->what;
        server_tell_failed(w, profile, why);
        return true;
    }
    struct slot *s = slots_take(w, n, &e);
    if (!s) {
        server_tell_failed(w, profile, e.text);
        return true;
    }
    struct wire_out o;
    n_make_put(&o, &(struct n_make){.sandbox = s->sandbox,
                                    .slot = (uint32_t)(s - w->slots),
                                    .procs = slots_procs(&s->cgroup)});
    chan_send(&n->chan, &o);
    return true;
}

static bool request_end(const struct asked *a) {
    a->slot->ending = true;
    survivors_free(a->slot); /* no next server gets it; what a program left in it is not ours to
                                close */
    slots_end(a->slot);
    return true;
}

static bool request_lost(const struct asked *a) {
    a->slot->known = false;
    return request_end(a);
}

static bool request_kernel(const struct asked *a) {
    struct warden *w = a->warden;
    struct slot *s = a->slot;
    const struct w_kernel *m = &a->m->kernel;
    const struct cgroup_limits l = {
        .memory_bytes = m->memory_bytes, .pids = m->pids, .cpus_percent = m->cpus_percent};
    struct err e;
    if (a->stage == STAGE_ENDING)
        return true; /* its end will be told */
    const struct cgroup_slot *group = &s->cgroup;
    if (l.memory_bytes)
        group = groups_make(w, s, m->number, &l, &e);
    if (!group) {
        server_tell_kernel_failed(w, m->sandbox, m->number, e.text);
        return true;
    }
    struct wire_out o;
    n_kernel_put(&o, &(struct n_kernel){
                         .sandbox = m->sandbox, .number = m->number, .procs = slots_procs(group)});
    chan_send(&s->nursery->chan, &o);
    return true;
}

static bool request_left(const struct asked *a) {
    groups_left(a->warden, a->slot, a->m->left.number);
    return true;
}

static bool request_shut(const struct asked *a) {
    survivors_shut(a->slot, a->m->shut.number);
    return true;
}

static bool request_keep(const struct asked *a) {
    struct err e;
    AUTO_FD journal = wire_keep(a->in, a->m->keep.journal);
    return survivors_keep(a->slot, &journal, &e) == 0;
}

#define NONE    (1u << STAGE_NONE)
#define GONE    (1u << STAGE_GONE)
#define ONESHOT (1u << STAGE_ONESHOT)
#define LIVE    (1u << STAGE_LIVE)
#define KEPT    (1u << STAGE_KEPT)
#define ENDING  (1u << STAGE_ENDING)

static const struct {
    enum wire_type type;
    enum wire_payload payload; /* says how many descriptors there are, too */
    unsigned stages;
    bool (*fn)(const struct asked *);
} requests[] = {
    {WIRE_W_MAKE, WIRE_PAYLOAD_w_make, NONE, request_make},
    {WIRE_W_END, WIRE_PAYLOAD_w_end, GONE | ONESHOT | LIVE | KEPT | ENDING, request_end},
    {WIRE_W_LOST, WIRE_PAYLOAD_w_lost, GONE | ONESHOT | LIVE | KEPT | ENDING, request_lost},
    {WIRE_W_KERNEL, WIRE_PAYLOAD_w_kernel, GONE | LIVE | KEPT | ENDING, request_kernel},
    {WIRE_W_LEFT, WIRE_PAYLOAD_w_left, GONE | LIVE | KEPT | ENDING, request_left},
    {WIRE_W_SHUT, WIRE_PAYLOAD_w_shut, GONE | LIVE | KEPT | ENDING, request_shut},
    {WIRE_W_KEEP, WIRE_PAYLOAD_w_keep, GONE | LIVE, request_keep},
};
#define REQUESTS (sizeof requests / sizeof *requests)

bool requests_allows(enum wire_type type, enum slot_stage stage) {
    for (size_t i = 0; i < REQUESTS; i++) {
        if (requests[i].type == type)
            return requests[i].stages & 1u << stage;
    }
    return false;
}

static enum slot_stage stage_of(const struct slot *s) {
    if (!s)
        return STAGE_GONE;
    if (s->orphan || !s->told)
        return STAGE_SECRET;
    if (s->ending)
        return STAGE_ENDING;
    if (!s->survivor)
        return STAGE_ONESHOT;
    return survivors_outlives(s) ? STAGE_KEPT : STAGE_LIVE;
}

bool requests_serve(struct warden *w, struct wire_in *in) {
    union request m;
    struct err e;
    size_t i = 0;
    while (i < REQUESTS && requests[i].type != in->type)
        i++;
    if (i == REQUESTS || wire_get(in, wire_layout(requests[i].payload), &m, &e) < 0)
        return false;
    struct asked a = {.warden = w, .stage = STAGE_NONE, .m = &m, .in = in};
    if (requests[i].stages != NONE) {
        a.slot = slots_find(w, m.sandbox);
        a.stage = stage_of(a.slot);
    }
    if (!(requests[i].stages & 1u << a.stage))
        return false;
    return a.stage == STAGE_GONE || requests[i].fn(&a);
}
