/* See api.h. */

#include "api/api.h"

#include "api/core/call.h"
#include "api/core/doors.h"
#include "api/core/quota.h"
#include "api/dialects.h"
#include "api/jobs/cell_job.h"
#include "api/jobs/command_job.h"
#include "api/jobs/records.h"
#include "api/jobs/replays.h"
#include "api/mcp/mcp.h"
#include "api/native/native.h"
#include "api/profiles/own.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/core/sandbox.h"
#include "engine/live/lives.h"
#include "engine/network/terms.h"
#include "keys/keys_file.h"

#include <stdlib.h>
#include <string.h>

#define BATCHING_NS   1500000u
#define RECORDS_BYTES (64u << 20)
#define RECORDS_MS    600000
#define DRAIN_LOOK_MS 50
#define PORTS_NS      2000000u

static int check_networks(const struct api *a, const struct keys *keys, struct err *e) {
    for (unsigned i = 0; i < keys->n; i++) {
        const struct key *k = &keys->items[i];
        if (k->network && network_rules_check(a->o.engine->network, k->network, e) < 0)
            return err_wrap(e, "the key %s", k->id);
    }
    return 0;
}

int api_reload(struct api *a, struct err *e) {
    struct keys keys = {0};
    bool there = false;
    if (keys_read(a->o.keys_dir, a->config->http.keys, &keys, &there, e) < 0)
        return -1;
    if (check_networks(a, &keys, e) < 0) {
        keys_done(&keys);
        return -1;
    }
    /* A file that is gone does not open the door: without keys nobody comes in. */
    keys_done(&a->keys);
    a->keys = keys;
    a->has_keys = a->has_keys || there;
    if (a->has_keys && !there)
        log_warn("keys read, but their file is gone: nobody has a key n=0");
    else
        log_info("keys read n=%u", keys.n);
    return 0;
}

static void on_cpu_account(void *arg, const char *payer, double cpu_seconds) {
    struct api *a = arg;
    quota_used(a->quota, payer, cpu_seconds);
}

static const char *trouble(void *arg) {
    const struct api *a = arg;
    return audit_trouble(&a->audit);
}

static void on_network_note(void *arg, const struct sandbox *s, const struct g_note *m) {
    struct api *a = arg;
    if (s->guest)
        audit_network(&a->audit, &(struct audit_network){.tenant = s->guest->tenant,
                                                         .id = s->guest->id,
                                                         .target = m->target,
                                                         .rule = m->rule,
                                                         .refused = m->refused});
}

static void before_reply(void *arg) {
    struct api *a = arg;
    live_write_all(a->o.engine);
}

int api_new(const struct api_options *o, struct api **ret, struct err *e) {
    struct api *a = xcalloc(1, sizeof *a);
    *ret = a;
    a->o = *o;
    a->config = &o->engine->config;
    loop_share_init(&a->batching, o->loop, BATCHING_NS);
    a->quota = quota_new();
    a->records = records_new(o->loop, RECORDS_BYTES, RECORDS_MS);
    a->replays = replays_new(a->config->http.idempotency_keys);
    a->started_ns = now_ns();
    loop_share_init(&a->port_share, o->loop, PORTS_NS);
    routes_add(&a->routes, native_tables, NULL);
    routes_add(&a->routes, mcp_tables, NULL);
    dialects_start(a, dialects);
    audit_open(&a->audit,
               &(struct audit_options){.loop = o->loop,
                                       .dir = o->audit_dir,
                                       .max_bytes = (uint64_t)a->config->http.audit_mb << 20,
                                       .files = a->config->http.audit_files,
                                       .lets = strcmp(a->config->http.audit_full, "allow") == 0});
    const struct http_options http = {.loop = o->loop,
                                      .arg = a,
                                      .on_request = call_begin,
                                      .on_reply = before_reply,
                                      .on_finished = call_finished,
                                      .max_connections = a->config->http.max_connections,
                                      .header_s = a->config->http.header_s,
                                      .idle_s = a->config->http.idle_s,
                                      .body_step_s = a->config->http.header_s,
                                      .bodies_max = (size_t)a->config->http.bodies_mb << 20,
                                      .reply_max = (size_t)a->config->http.reply_buffer_kb << 10,
                                      .replies_max = (size_t)a->config->http.replies_mb << 20};
    struct lives *lives = o->engine->lives;
    lives->on_cpu_account = on_cpu_account;
    lives->cpu_account_arg = a;
    o->engine->trouble = trouble;
    o->engine->trouble_arg = a;
    o->engine->gate.on_note = on_network_note;
    o->engine->gate.note_arg = a;
    lives->on_command = command_job_audit;
    lives->command_arg = a;
    lives->heir =
        (struct live_heir){.arg = a, .cell = cell_job_inherit, .command = command_job_inherit};
    if (api_reload(a, e) < 0 || own_open(a, o->trees_dir, e) < 0 ||
        (*a->config->http.ports_domain &&
         link_secret_open(o->state_dir, LINK_SECRET_LINKS, &a->links, e) < 0) ||
        mcp_start(a, e) < 0)
        return -1;
    return http_new(&http, &a->http, e);
}

int api_listen(struct api *a, int *fd, struct err *e) {
    dialects_adopt(a); /* what was kept is here by now */
    doors_adopt(a);
    own_settled(a);
    return http_listen(a->http, fd, NULL, e);
}

static void api_on_drain(struct timer *t) {
    struct api *a = t->arg;
    if (a->active && now_ns() < a->drain_until_ns) {
        loop_timer_in_ms(a->o.loop, t, DRAIN_LOOK_MS);
        return;
    }
    audit_close(&a->audit);
    a->drained(a->drained_arg);
}

void api_drain(struct api *a, uint32_t within_ms, void (*done)(void *arg), void *arg) {
    http_drain(a->http);
    a->drained = done;
    a->drained_arg = arg;
    a->drain_until_ns = now_ns() + ms_to_ns(within_ms);
    a->drain_timer = (struct timer){.fn = api_on_drain, .arg = a};
    loop_timer_in_ms(a->o.loop, &a->drain_timer, 0);
}
