/* The profiles anew, and what may be granted of the network (W_RELOAD): programs that run go on;
 * sandboxes of a changed profile that wait for one are ended, and replaced as its new interpreter
 * can. What the warden sent before this message is of the old profiles, what it sends after is of
 * the new ones. */

#include "engine/core/reload.h"

#include "base/fd.h"
#include "base/log.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

static void drop_idle(struct engine *g, struct profile_pool *p) {
    for (struct sandbox *s = g->sandboxes, *next; s; s = next) {
        next = s->next;
        if (s->pool != p || (s->state != SANDBOX_READY && s->state != SANDBOX_STARTING))
            continue;
        if (s->state == SANDBOX_STARTING && p->making)
            p->making--;
        sandbox_end(s);
    }
}

static void take_over(struct engine *g, struct config *next, uint32_t changed) {
    unsigned before = g->config.nprofiles;
    for (unsigned i = 0; i < next->nprofiles; i++) {
        struct config_profile old = g->config.profiles[i];
        g->config.profiles[i] = next->profiles[i];
        next->profiles[i] = old; /* freed with the rest; the strings of a new place are NULL */
    }
    g->config.nprofiles = next->nprofiles;
    for (unsigned i = before; i < g->config.nprofiles; i++)
        pool_init(g, i);
    for (unsigned i = 0; i < before; i++) {
        struct profile_pool *p = &g->pools[i];
        if (!(changed & 1u << i))
            continue;
        p->state = PROFILE_STARTING;
        p->failures = 0;
        drop_idle(g, p);
    }
}

/* Sandboxes that are there keep what they were granted. */
static void take_network(struct engine *g, const struct config *next) {
    struct err e;
    struct network_rules *rules = network_rules_read(next, &e);
    if (rules) {
        network_rules_free(g->network);
        g->network = rules;
    } else { /* the command line has read it before */
        log_error("network not read, what is known stays error=%s", log_text(e.text));
    }
}

void engine_reload(struct engine *g, struct wire_in *in) {
    struct err e;
    struct config next;
    struct w_reload m;
    if (w_reload_get(in, &m, &e) < 0 || config_unpack(m.config, &next, &e) < 0) {
        log_error("profiles not read error=%s", log_text(e.text));
        return;
    }
    if (next.nprofiles >= g->config.nprofiles)
        take_over(g, &next, m.changed);
    take_network(g, &next);
    config_done(&next);
}
