/* Live sandboxes outlive the server. Each writes what the next server has to know into its journal
 * whenever that changes; the warden keeps the journal with the sandbox's descriptors, and gives
 * both to the next server, which goes on from there. What never changes in an object (variables,
 * directories: they may be long) becomes JSON once, and is written when an object is new or
 * different; states are written each time.
 *
 * With a server are lost: what its clients had not read yet, executions that only waited, and the
 * output so far of one that runs (its result says that it is cut). A kernel never notices. To learn
 * whether an execution in the journal still runs, the server asks the kernel a question that is
 * answered after it: an answer that comes before the end means that the end was lost. */

#include "engine/live/keep.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/live/command.h"
#include "engine/live/gone.h"
#include "engine/live/internal.h"
#include "engine/live/journal.h"
#include "engine/live/lives.h"
#include "engine/network/terms.h"
#include "engine/process/pace.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 2000 /* bytes of a command that the next server shows */
#define AHEAD     1024 /* process numbers that are reserved ahead of the journal */

/* ---- out ---- */

static void put_limits(struct jw *j, const struct limits *l) {
    jw_key(j, "limits");
    jw_object(j);
    for (size_t i = 0; i < LIMITS_; i++)
        jw_key_uint(j, limits_info[i].member, limits_value(l, i));
    jw_object_end(j);
}

static void put_process(struct jw *j, const struct process *p) {
    jw_key_int(j, "number", p->state == PROCESS_NONE ? -1 : (int64_t)p->number);
}

static void put_cell(struct jw *j, const struct cell *c) {
    jw_key(j, "cell");
    if (!c) {
        jw_null(j);
        return;
    }
    jw_object(j);
    jw_key_str(j, "id", c->id);
    jw_key_uint(j, "born_ns", c->outcome.born_ns);
    jw_key_uint(j, "started_ns", c->outcome.started_ns);
    jw_key_uint(j, "until_ns", c->timer.place ? c->timer.at_ns : 0);
    jw_key_uint(j, "left_ns", c->left_ns);
    jw_key_uint(j, "stop", c->stop);
    jw_key_uint(j, "count", c->execution_count);
    jw_key_uint(j, "cpu_base_us", c->cpu_base_us);
    jw_key_uint(j, "changed_since_ns", c->changed_since_ns);
    jw_key_bool(j, "silent", c->req.silent);
    jw_key_bool(j, "no_history", c->req.no_history);
    jw_key_bool(j, "restarted", c->kernel_restarted);
    jw_key_bool(j, "waits_for_input", c->waits_for_input);
    jw_key_str(j, "tag", c->req.tag);
    put_limits(j, &c->req.limits);
    jw_object_end(j);
}

static void put_kernel(struct jw *j, const struct kernel *k) {
    jw_object(j);
    jw_key_str(j, "id", k->id);
    put_process(j, &k->process);
    jw_key_bool(j, "begun", k->begun);
    jw_key_bool(j, "default", k->is_default);
    jw_key_bool(j, "fresh", k->is_fresh);
    jw_key_uint(j, "restarts", k->restarts);
    jw_key_uint(j, "count", k->execution_count);
    put_limits(j, &k->process.limits);
    put_cell(j, k->running);
    jw_object_end(j);
}

static void put_command(struct jw *j, const struct command *c) {
    jw_object(j);
    jw_key_str(j, "id", c->id);
    put_process(j, &c->process);
    jw_key_bool(j, "begun", c->outcome.started_ns != 0 && (!c->req.rows || c->terminal >= 0));
    jw_key_real(j, "created", c->created);
    jw_key_uint(j, "started_ns", c->outcome.started_ns);
    jw_key_uint(j, "until_ns", c->timer.place ? c->timer.at_ns : 0);
    jw_key_uint(j, "output_bytes", c->req.output_bytes);
    jw_key_uint(j, "rows", c->req.rows);
    jw_key_uint(j, "left_ns", c->left_ns);
    jw_key_bool(j, "stdin_closed", c->stdin_feed.closed);
    jw_key_uint(j, "status", c->status);
    jw_key_uint(j, "ended_ns", c->outcome.ended_ns);
    jw_key_int(j, "exit_code", c->outcome.exit_code);
    jw_key_int(j, "signal", c->outcome.signal);
    jw_object_end(j);
}

static void put_live(struct jw *j, const struct live *l) {
    jw_key_str(j, "id", l->id);
    put_limits(j, &l->req.limits);
    jw_key_uint(j, "ttl_s", l->req.ttl_s);
    jw_key_uint(j, "idle_s", l->req.idle_s);
    jw_key_real(j, "created", l->created);
    jw_key_uint(j, "expires_ns", l->expires_ns);
    jw_key_bool(j, "paused", l->paused);
    jw_key_uint(j, "port", l->port);
    jw_key_uint(j, "last_number", l->last_number);
    jw_key_uint(j, "executions", l->executions);
    jw_key_uint(j, "cpu_base_us", l->sandbox->cgroup->cpu_base_us);
    jw_key_uint(j, "cpu_below_us", l->cpu_below_us);
}

/* All that changes, behind what lasts. */
static void put_states(struct buf *to, const struct live *l) {
    struct jw j = {.to = to, .comma = true};
    put_live(&j, l);
    jw_key(&j, "kernels");
    jw_array(&j);
    for (const struct kernel *k = l->kernels; k; k = k->next)
        if (!k->deleted)
            put_kernel(&j, k);
    jw_array_end(&j);
    jw_key(&j, "commands");
    jw_array(&j);
    for (const struct command *c = l->commands; c; c = c->next)
        if (!c->deleted)
            put_command(&j, c);
    jw_array_end(&j);
    jw_object_end(&j);
}

/* What was granted stays, whatever the operator grants by then: the packed form says it. */
static void put_network(struct jw *j, const struct network_terms *t) {
    AUTO_BUF packed = BUF_INIT;
    base64_encode(&packed, t->packed.data, t->packed.len);
    jw_key_str(j, "network", t->json.data);
    jw_key_str(j, "network_packed", packed.data);
}

static void renew_live(struct live *l) {
    struct jw j = JW_INIT(&l->lasting);
    jw_object(&j);
    jw_key_str(&j, "tenant", l->req.tenant);
    jw_key_str(&j, "profile", l->profile);
    jw_key_str(&j, "name", l->req.name);
    jw_key_str(&j, "metadata", l->req.metadata);
    jw_key_str(&j, "alias", l->req.alias);
    jw_key_str(&j, "payer", l->req.payer);
    jw_key_str(&j, "env", l->req.env);
    jw_key_str(&j, "binds", l->req.binds_json);
    jw_key_str(&j, "tree", l->req.tree ? l->req.tree->id : NULL);
    if (l->req.network)
        put_network(&j, l->req.network);
    jw_object_end(&j);
}

static void renew_kernel(struct kernel *k) {
    struct jw j = JW_INIT(&k->lasting);
    jw_object(&j);
    jw_key_str(&j, "env", k->env);
    jw_key_str(&j, "cwd", k->cwd);
    jw_key_str(&j, "label", k->label);
    jw_object_end(&j);
}

static void renew_command(struct command *c) {
    struct jw j = JW_INIT(&c->lasting);
    jw_object(&j);
    jw_key(&j, "shown");
    jw_strn(&j, c->req.shown, strnlen(c->req.shown, SHOWN_MAX));
    jw_key_str(&j, "cwd", c->req.cwd);
    jw_object_end(&j);
}

/* Writes the texts of objects that are new or changed; any of them makes a new edition. */
static void renew_lasting(struct live *l) {
    bool is_new = l->lasting.len == 0;
    if (is_new)
        renew_live(l);
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (k->lasting.len > 0)
            continue;
        renew_kernel(k);
        is_new = true;
    }
    for (struct command *c = l->commands; c; c = c->next) {
        if (c->lasting.len > 0)
            continue;
        renew_command(c);
        is_new = true;
    }
    l->edition += is_new;
}

static void put_object(struct jw *j, const char *id, const struct buf *text) {
    jw_key(j, id);
    jw_raw(j, text->data, text->len);
}

/* What never changes in each object, by its id. The JSON object stays open for the states. */
static void put_lasting(struct buf *to, const struct live *l) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key(&j, "lasting");
    jw_object(&j);
    put_object(&j, l->id, &l->lasting);
    for (const struct kernel *k = l->kernels; k; k = k->next)
        put_object(&j, k->id, &k->lasting);
    for (const struct command *c = l->commands; c; c = c->next)
        put_object(&j, c->id, &c->lasting);
    jw_object_end(&j);
}

static void keep_write_now(struct deferred *d) {
    struct live *l = d->arg;
    AUTO_BUF lasting = BUF_INIT;
    AUTO_BUF states = BUF_INIT;
    if (!l->journal || !l->unwritten || l->state != LIVE_RUNNING)
        return;
    uint64_t began = thread_cpu_ns();
    l->unwritten = false;
    loop_timer_stop(l->engine->loop, &l->write_timer);
    renew_lasting(l);
    if (journal_needs(l->journal, l->edition))
        put_lasting(&lasting, l);
    put_states(&states, l);
    journal_write(l->journal, l->edition, &lasting, &states);
    /* SECURITY: clients and kernels decide how often it is written. */
    pace_heard(l, NULL, thread_cpu_ns() - began);
}

static void keep_on_timer(struct timer *t) {
    live_changed_lately(t->arg);
}

void live_write_all(struct engine *g) {
    for (struct live *l = g->lives->shared->unwritten ? g->lives->first : NULL; l; l = l->next)
        keep_write_now(&l->write_later);
    g->lives->shared->unwritten = false;
}

void live_keep_init(struct live *l) {
    l->write_later = (struct deferred){.fn = keep_write_now, .arg = l};
    l->write_timer = (struct timer){.fn = keep_on_timer, .arg = l};
    l->lasting = (struct buf)BUF_INIT;
}

/* From here on it outlives this server. */
void live_keep(struct live *l) {
    struct wire_out o;
    struct err e;
    if (journal_new(&l->journal, l->req.tenant, l->id, &e) < 0) {
        log_warn("live sandbox ends with this server id=%s why=%s", l->id, log_text(e.text));
        return;
    }
    l->told = journal_counter(l->journal);
    l->lent_told = journal_lent(l->journal);
    l->unwritten = true;
    keep_write_now(&l->write_later);
    w_keep_put(&o, &(struct w_keep){.sandbox = l->sandbox->id, .journal = journal_fd(l->journal)});
    chan_send(&l->engine->warden, &o);
}

/* ---- in ---- */

static char *text_of(const json_t *o, const char *name) {
    const char *s = json_string_value(json_object_get(o, name));
    return s ? xstrdup(s) : NULL;
}

static uint64_t number_of(const json_t *o, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(o, name));
}

static bool truth_of(const json_t *o, const char *name) {
    return json_is_true(json_object_get(o, name));
}

static void take_id(char to[ID_MAX], const json_t *o) {
    const char *s = json_string_value(json_object_get(o, "id"));
    snprintf(to, ID_MAX, "%s", s ? s : "");
}

/* What never changes in the object; a journal of version 1 has it among the rest. */
static const json_t *lasting_of(const json_t *all, const json_t *o) {
    const char *id = json_string_value(json_object_get(o, "id"));
    const json_t *found = id ? json_object_get(json_object_get(all, "lasting"), id) : NULL;
    return found ? found : o;
}

static void take_limits(struct limits *l, const json_t *o) {
    const json_t *from = json_object_get(o, "limits");
    for (size_t i = 0; i < LIMITS_; i++)
        limits_set(l, i, number_of(from, limits_info[i].member));
}

static void take_cell(struct kernel *k, const json_t *o) {
    struct cell_request q = {.tag = text_of(o, "tag"),
                             .silent = truth_of(o, "silent"),
                             .no_history = truth_of(o, "no_history")};
    take_limits(&q.limits, o);
    struct cell *c = cell_resume(k, &q);
    take_id(c->id, o);
    c->outcome.born_ns = number_of(o, "born_ns");
    c->outcome.given_ns = c->outcome.started_ns = number_of(o, "started_ns");
    c->left_ns = number_of(o, "left_ns");
    c->stop = (enum cell_stop)number_of(o, "stop");
    c->execution_count = number_of(o, "count");
    c->cpu_base_us = number_of(o, "cpu_base_us");
    c->changed_since_ns = number_of(o, "changed_since_ns");
    c->kernel_restarted = truth_of(o, "restarted");
    c->waits_for_input = truth_of(o, "waits_for_input");
    kernel_set_running(k, c);
    if (number_of(o, "until_ns"))
        loop_timer(k->live->engine->loop, &c->timer, number_of(o, "until_ns"));
}

static void take_kernel(struct live *l, const json_t *o, const json_t *lasting) {
    struct kernel *k = xcalloc(1, sizeof *k);
    const json_t *cell = json_object_get(o, "cell");
    int64_t number = json_integer_value(json_object_get(o, "number"));
    kernel_init(k, l);
    take_id(k->id, o);
    k->begun = k->was_ready = truth_of(o, "begun");
    k->is_default = truth_of(o, "default");
    k->is_fresh = truth_of(o, "fresh");
    k->env = text_of(lasting, "env");
    k->cwd = text_of(lasting, "cwd");
    k->label = text_of(lasting, "label");
    k->restarts = (unsigned)number_of(o, "restarts");
    k->execution_count = number_of(o, "count");
    take_limits(&k->process.limits, o);
    if (json_is_object(cell))
        take_cell(k, cell);
    process_expect(&k->process, l, number);
}

static void take_command(struct live *l, const json_t *o, const json_t *lasting) {
    struct command_request q = {.shown = text_of(lasting, "shown"),
                                .cwd = text_of(lasting, "cwd"),
                                .rows = (uint32_t)number_of(o, "rows"),
                                .output_bytes = number_of(o, "output_bytes")};
    struct command *c = command_resume(l, &q);
    take_id(c->id, o);
    c->created = json_real_value(json_object_get(o, "created"));
    c->outcome.started_ns = number_of(o, "started_ns");
    c->left_ns = number_of(o, "left_ns");
    c->stdin_feed.closed = truth_of(o, "stdin_closed");
    c->begun = truth_of(o, "begun");
    c->cut = true;
    uint64_t status = number_of(o, "status");
    if (status != COMMAND_RUNNING) {
        c->outcome.ended_ns = number_of(o, "ended_ns");
        c->outcome.exit_code = (int)json_integer_value(json_object_get(o, "exit_code"));
        c->outcome.signal = (int)json_integer_value(json_object_get(o, "signal"));
        command_resume_over(c, status < COMMAND_STATES_ ? (enum command_status)status
                                                        : COMMAND_KILLED);
        return;
    }
    if (number_of(o, "until_ns"))
        loop_timer(l->engine->loop, &c->timer, number_of(o, "until_ns"));
    process_expect(&c->process, l, json_integer_value(json_object_get(o, "number")));
}

static void take_network(struct live *l, const json_t *lasting) {
    const char *packed = json_string_value(json_object_get(lasting, "network_packed"));
    AUTO_FREE char *json = text_of(lasting, "network");
    AUTO_BUF bytes = BUF_INIT;
    struct err e;
    if (!json || !packed)
        return;
    base64_decode(&bytes, packed, strlen(packed));
    l->req.network = network_terms_of(json, &bytes, &e);
    network_inherit(l->sandbox, l->req.network);
    if (e.code)
        log_error("network not taken over id=%s error=%s", l->id, log_text(e.text));
}

static int take_live(struct live *l, const json_t *o, struct err *e) {
    const json_t *lasting = lasting_of(o, o);
    l->guest.tenant = l->req.tenant = text_of(lasting, "tenant");
    l->req.name = text_of(lasting, "name");
    l->req.metadata = text_of(lasting, "metadata");
    l->req.alias = text_of(lasting, "alias");
    l->req.payer = text_of(lasting, "payer");
    l->req.env = text_of(lasting, "env");
    l->req.binds_json = text_of(lasting, "binds");
    l->profile = text_of(lasting, "profile");
    const char *tree = json_string_value(json_object_get(lasting, "tree"));
    l->req.tree = tree ? trees_inherit(l->engine, tree) : NULL;
    take_id(l->id, o);
    if (!l->req.tenant || !l->req.metadata || !l->profile || !l->id[0])
        return err_set(e, EPROTO, "a journal lacks something");
    take_limits(&l->req.limits, o);
    l->req.ttl_s = (uint32_t)number_of(o, "ttl_s");
    l->req.idle_s = (uint32_t)number_of(o, "idle_s");
    l->created = json_real_value(json_object_get(o, "created"));
    l->expires_ns = number_of(o, "expires_ns");
    l->paused = truth_of(o, "paused");
    l->port = (uint16_t)number_of(o, "port");
    l->last_number = (uint32_t)number_of(o, "last_number") + AHEAD;
    l->executions = number_of(o, "executions");
    l->sandbox->cgroup->cpu_base_us = number_of(o, "cpu_base_us");
    l->cpu_below_us = number_of(o, "cpu_below_us");
    take_network(l, lasting);
    return 0;
}

static void take_processes(struct live *l, const json_t *o) {
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(o, "kernels"), i, item)
        take_kernel(l, item, lasting_of(o, item));
    json_array_foreach(json_object_get(o, "commands"), i, item)
        take_command(l, item, lasting_of(o, item));
}

/* The API takes up the executions and commands that go on. */
static void keep_tell_heirs(struct live *l) {
    const struct live_heir *h = &l->engine->lives->heir;
    uint64_t number = *l->told;
    for (struct kernel *k = l->kernels; k; k = k->next)
        if (k->running && h->cell)
            h->cell(h->arg, l, k->running, number);
    for (struct command *c = l->commands; c; c = c->next)
        if (c->status == COMMAND_RUNNING && h->command)
            h->command(h->arg, l, c, number);
}

static int keep_adopt(struct live *l, int *journal, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    json_auto_t *o = NULL;
    if (journal_open(journal, &l->journal, &text, e) < 0 ||
        json_read(text.data, text.len, JSON_DEPTH_MAX, &o, e) < 0 || take_live(l, o, e) < 0)
        return -1;
    l->told = journal_counter(l->journal);
    l->lent_told = journal_lent(l->journal);
    l->sandbox->lent_bytes = *l->lent_told;
    gone_expect(l->engine->lives->gone, l->req.tenant, l->id);
    take_processes(l, o);
    keep_tell_heirs(l);
    return 0;
}

void live_adopt(struct engine *g, struct wire_in *in) {
    struct w_kept m;
    struct err e;
    int r = w_kept_get(in, &m, &e);
    struct w_made made = {m.sandbox, m.profile, m.slot, m.version, {0}, m.knobs};
    memcpy(made.fds, m.fds, sizeof made.fds);
    struct sandbox *s = r < 0 ? NULL : sandbox_adopt(g, &made, in, &e);
    if (!s) {
        sandbox_refuse(g, m.sandbox, &e);
        return;
    }
    AUTO_FD journal = wire_keep(in, m.journal);
    struct live *l = live_inherit(g, s);
    if (keep_adopt(l, &journal, &e) < 0) {
        log_error("live sandbox not taken over id=%s error=%s",
                  log_text(l->journal ? journal_id(l->journal) : ""), log_text(e.text));
        if (l->journal && *journal_id(l->journal))
            gone_add(g->lives->gone, journal_tenant(l->journal), journal_id(l->journal), e.text);
        live_disown(l);
        return;
    }
    log_info("live sandbox taken over id=%s", l->id);
    live_inherited(l, m.kernels);
}
