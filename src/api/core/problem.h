#pragma once
/* What went wrong, as a client is told: problem.c has one table with the status and the remedy of
 * each kind of error. Functions that can fail return -1 and fill in a problem, their last
 * parameter; whoever answers the client says it (call_problem, outlet_problem). For api/ only. */

#include "base/err.h"
#include "base/schema.h"
#include "http/openapi.h"

#include <stdarg.h>
#include <stdbool.h>

struct buf;
struct jw;

struct problem {
    int status;
    const char *code, *remediation; /* constants */
    const char *message;            /* NULL: the text */
    const char *detail;             /* what existing clients read; NULL: the message */
    bool retryable;
    unsigned retry_after_s; /* 0: nobody knows */
    char text[ERR_TEXT_MAX];
};

/* An error of that kind. Returns -1, for `return problem_set(…)`. */
int problem_set(struct problem *p, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int problem_vset(struct problem *p, const char *code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
/* A bad_value, with a remedy of its own. */
int problem_bad_value(struct problem *p, const char *remediation, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An error of the engine or the store; one that has no kind of ours is an internal one. */
struct problem problem_of(const struct err *e);
const char *problem_message(const struct problem *p);

/* The body of an error reply: `error` and `detail` (docs/errors.md). */
void problem_json(const struct problem *p, struct buf *to);
/* Its member `error`, into the object that is open. */
void problem_put(const struct problem *p, struct jw *j);
/* The same into an object that is written already and has members. */
void problem_add(const struct problem *p, struct buf *object);

/* For the specification. That code of the table, if it is one. */
bool problem_code(const char *word, size_t len, struct api_code *ret);
/* All of them; how many there are. Or NULL. */
size_t problem_codes(struct api_code *to);
/* What problem_json and problem_put write. Dialects add to it. */
extern const struct schema error_schema, cause_schema, detail_schema;

/* What resources refuse alike, for `errors` in the rows of their routes. */
#define ERRORS_OF_SANDBOX "no_such_sandbox sandbox_gone "
#define ERRORS_OF_KERNEL                                                                           \
    ERRORS_OF_SANDBOX "sandbox_paused no_such_kernel kernel_gone kernel_failed "
#define ERRORS_OF_COMMAND ERRORS_OF_SANDBOX "no_such_command "
#define ERRORS_OF_NETWORK                                                                          \
    "network_rule_invalid network_not_allowed network_unavailable sandbox_busy "
#define ERRORS_OF_INPUTS "bad_path bad_base64 no_file disk_full file_too_large no_descriptors "
/* Of whatever needs a new sandbox. */
#define ERRORS_OF_START                                                                            \
    ERRORS_OF_INPUTS ERRORS_OF_NETWORK                                                             \
        "unknown_profile profile_broken limit_too_high too_much_cpu queue_full queue_timeout "     \
        "memory_budget no_sandbox sandbox_lost audit_unavailable "
#define ERRORS_OF_PROGRAM ERRORS_OF_START "code_too_long interrupted "
/* Of the files of a live sandbox. */
#define ERRORS_OF_PATH                                                                             \
    ERRORS_OF_SANDBOX                                                                              \
    "sandbox_busy bad_path no_such_path path_taken path_busy no_access disk_full 507:disk_full "   \
    "file_too_large no_descriptors memory_budget "
