/* See command_job.h. */

#include "api/jobs/command_job.h"

#include "api/core/audit.h"
#include "api/core/quota.h"
#include "api/jobs/records.h"
#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command_job {
    bool goes_on;
    void (*on_start)(void *arg, struct command *c); /* or NULL, as the next */
    void (*on_done)(void *arg, struct rope *result);
    void *arg;
    struct record *record;
    struct command *command; /* borrowed while it runs */
};

/* ---- from the engine ---- */

static void command_job_on_event(void *arg, const char *type, const struct buf *json) {
    struct command_job *x = arg;
    void (*on_start)(void *arg, struct command *c) = x->on_start;
    record_event(x->record, type, json->data, json->len);
    if (!on_start || strcmp(type, "start") != 0)
        return;
    x->on_start = NULL;
    x->on_done = NULL;
    on_start(x->arg, x->command);
}

static void command_job_on_done(void *arg, struct command *c) {
    struct command_job *x = arg;
    AUTO_BUF end = BUF_INIT;
    AUTO_ROPE all = ROPE_INIT;
    AUTO_ROPE kept = ROPE_INIT;
    command_json(c, &end);
    command_result(c, &all);
    rope_add_rope(&kept, &all);
    record_event(x->record, "end", end.data, end.len);
    record_end_with(x->record, &kept);
    if (x->on_done)
        x->on_done(x->arg, &all);
    free(x);
}

static struct command_callbacks callbacks_of(struct command_job *x) {
    return (struct command_callbacks){
        .arg = x, .on_event = command_job_on_event, .on_done = command_job_on_done};
}

void command_job_inherit(void *arg, struct live *l, struct command *c, uint64_t number) {
    const struct api *a = arg;
    struct command_job *x = xcalloc(1, sizeof *x);
    const struct command_callbacks cb = callbacks_of(x);
    x->command = c;
    x->record = record_new(a->records, command_id(c), live_tenant(l));
    record_skip(x->record, number);
    command_call(c, &cb);
}

/* Of a command that an earlier server started, only part of its line may be known. */
void command_job_audit(void *arg, const struct live *l, const struct command *c) {
    struct api *a = arg;
    const struct command_request *q = command_asked(c);
    const char *line = q->request[0] ? q->shown : "";
    struct audit_code code;
    struct caller who = {.api = a};
    snprintf(who.tenant, sizeof who.tenant, "%s", live_tenant(l));
    snprintf(who.request, sizeof who.request, "%s", q->request);
    snprintf(who.key, sizeof who.key, "%s", q->key);
    audit_code(&code, line, strlen(line), strcmp(a->config->http.audit_code, "on") == 0);
    audit_write(&a->audit, &(struct audit_line){.execution = command_id(c),
                                                .who = &who,
                                                .code = &code,
                                                .status = command_status(c),
                                                .profile = live_profile(l),
                                                .denied = command_denied(c)});
    audit_code_done(&code);
}

/* ---- from the request ---- */

void command_asked_by(struct command_request *q, const struct caller *who) {
    memcpy(q->request, who->request, sizeof q->request);
    memcpy(q->key, who->key, sizeof q->key);
}

int command_job_start(const struct caller *who, const struct command_job_options *o,
                      struct command_job **ret, struct problem *p) {
    struct err e;
    if (quota_may_run(who, p) < 0)
        return -1;
    struct command_job *x = xcalloc(1, sizeof *x);
    const struct command_callbacks cb = callbacks_of(x);
    x->goes_on = o->goes_on;
    x->on_start = o->on_start;
    x->on_done = o->on_done;
    x->arg = o->arg;
    command_asked_by(o->request, who);
    if (command_new(o->live, o->request, &cb, &x->command, &e) < 0) {
        *p = problem_of(&e);
        free(x);
        return -1;
    }
    log_info("command sandbox=%s command=%s request=%s", live_id(o->live), command_id(x->command),
             who->request);
    x->record = record_new(who->api->records, command_id(x->command), who->tenant);
    *ret = x;
    return 0;
}

struct command *command_job_command(const struct command_job *x) {
    return x->command;
}

struct record *command_job_record(const struct command_job *x) {
    return x->record;
}

static void command_job_hold(void *arg, bool on) {
    const struct command_job *x = arg;
    command_hold(x->command, on);
}

void command_job_leave(struct command_job *x) {
    struct err e;
    x->on_start = NULL;
    x->on_done = NULL;
    command_hold(x->command, false);
    if (!x->goes_on)
        command_signal(x->command, SIGKILL, &e);
}

static void command_job_on_leave(void *arg) {
    command_job_leave(arg);
}

struct events_source command_job_source(struct command_job *x) {
    return (struct events_source){
        .arg = x, .hold = command_job_hold, .leave = command_job_on_leave};
}
