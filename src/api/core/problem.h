#pragma once
/* What went wrong, as a client is told: problem.c has one table with the status and the remedy of
 * each kind of error. Functions that can fail return -1 and fill in a problem, their last
 * parameter; whoever answers the client says it (call_problem, outlet_problem). For api/ only. */

#include "base/err.h"

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
