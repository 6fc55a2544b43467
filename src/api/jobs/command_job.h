#pragma once
/* A command in a live sandbox that a request asked for: its record, its line in the audit log.
 * Whoever wants to see it as it goes follows the record (records.h). For api/ only. */

#include "api/core/call.h"
#include "api/jobs/events.h"
#include "engine/live/live.h"

struct command_job;
struct record;

struct command_job_options {
    struct live *live;
    struct command_request *request; /* its contents are taken if it starts */
    bool goes_on;                    /* without its client */
    /* Each or NULL; none comes after command_job_leave. After on_done the job is gone. Whoever
     * waits for the start hears of nothing else, but for an end that comes before it. */
    void (*on_start)(void *arg, struct command *c);
    void (*on_done)(void *arg, struct rope *result);
    void *arg;
};
/* -1 with a problem. */
int command_job_start(const struct caller *who, const struct command_job_options *o,
                      struct command_job **ret, struct problem *p);
struct command *command_job_command(const struct command_job *x);
struct record *command_job_record(const struct command_job *x);
struct events_source command_job_source(struct command_job *x);
/* The client is gone: the command is killed, unless it goes on. */
void command_job_leave(struct command_job *x);

/* Before command_new: who asks for it. */
void command_asked_by(struct command_request *q, const struct caller *who);
/* See on_command of the engine: the command's line in the audit log. */
void command_job_audit(void *arg, const struct live *l, const struct command *c);
/* From an earlier server: see live_heir. */
void command_job_inherit(void *arg, struct live *l, struct command *c, uint64_t number);
