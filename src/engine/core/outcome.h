#pragma once
/* How a program, a cell or a command ended: what is the same for all of them, gathered while it
 * runs and told when it is over. Embedded in its owner. */

#include "base/schema.h"
#include "engine/core/changes.h"
#include "engine/core/denials.h"
#include "engine/core/warnings.h"
#include "engine/network/used.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup_usage;
struct file_answer;
struct file_ask;
struct sandbox;
struct wire_in;

/* Of a program or a cell; commands have words of their own. */
enum outcome_status {
    OUTCOME_OK,
    OUTCOME_ERROR,
    OUTCOME_TIMEOUT,
    OUTCOME_MEMORY,
    OUTCOME_KILLED,
    OUTCOME_INTERRUPTED
};

struct outcome {
    enum outcome_status status;
    int exit_code, signal;                            /* -1 when there is none */
    enum limit_kind limit;                            /* that it met first */
    uint64_t born_ns, given_ns, started_ns, ended_ns; /* asked for; has a place; begun; over */
    uint64_t cpu_us, memory_peak;                     /* that it used, in microseconds and bytes */
    uint64_t output_bytes;                            /* that it printed, kept or not */
    bool cut[2];  /* of stdout, of stderr something is missing */
    bool crowded; /* since others of its sandbox left no room for it (kept.h) */
    struct denials denied;
    bool has_network;            /* its sandbox has a policy, or had one */
    struct network_used network; /* what it sent and got then */
    struct changes files;        /* owned: that it made or changed */
    unsigned char *counts;       /* owned, by file: 0 is not told; NULL: all are */
    bool files_cut;              /* there were more */
};

/* It is all zero before. */
void outcome_init(struct outcome *o);
void outcome_done(struct outcome *o);
/* Its process ended, and wait() says so. */
void outcome_exited(struct outcome *o, int status);
/* It met a limit; the first one is told. */
void outcome_met(struct outcome *o, enum limit_kind kind);
/* It may have met those that its control group and its disk tell of. */
void outcome_met_in(struct outcome *o, const struct cgroup_usage *u, const struct sandbox *s);

/* Asks init for the files that were made or changed since then, by the clock of files (0: all);
 * false as files_ask. The answer, if there is one, is for outcome_take_files. */
bool outcome_ask_files(struct sandbox *s, uint64_t since_ns, struct file_ask *who);
void outcome_take_files(struct outcome *o, struct file_answer *a);

/* Init's answer to network_ask_used, or NULL; `before`: what it was at the beginning. */
void outcome_take_network(struct outcome *o, struct sandbox *s, struct wire_in *in,
                          const struct network_used *before);

const char *outcome_word(enum outcome_status status);
uint64_t outcome_duration_ms(const struct outcome *o); /* so far */
/* For warnings_add, with the limits that it had. */
struct limits_met outcome_limits_met(const struct outcome *o, const struct limits *of);

/* The result in short, for counters and logs; lives as long as the one it is of. */
struct receipt {
    const char *status, *profile;
    double wall_ms, queue_ms, cpu_ms;
    uint64_t memory_peak;
    uint32_t timeout_ms; /* what it had */
    const char *refused; /* why the policy did not let it begin, or NULL */
    const struct denials *denied;
};
struct receipt outcome_receipt(const struct outcome *o, const char *profile);

/* The members of a result that programs and cells have in common, into an object that is open, in
 * the order of docs/http.md: those before what is only its own, and those after it. */
struct file_ids {
    const char *(*of)(void *arg, const char *path); /* of a stored file; or NULL, as its answer */
    void *arg;
};
/* All of them. */
extern const struct schema outcome_schema;
void outcome_put_beginning(struct jw *j, const struct outcome *o, const char *id,
                           const struct file_ids *ids);
void outcome_put_end(struct jw *j, const struct outcome *o, const char *profile, bool warm);
/* `error` of a result: an exception. */
extern const struct schema exception_schema;
/* A number, or null when it is negative. */
void outcome_put_code(struct jw *j, const char *name, int code);
