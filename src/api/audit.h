#pragma once
/* The audit log: one JSON line for each execution and each command: who, when, which code (its
 * hash), how it ended, what was denied. Append only. The code itself is in it only where the
 * operator wants that. */

#include "engine/engine.h"

struct audit_code {
    char sha256[65];
    size_t len;
    char *text; /* owned: the code, or NULL when it is not to be kept */
};
void audit_code(struct audit_code *to, const char *code, size_t len, bool keep);
void audit_code_done(struct audit_code *c);

struct audit_line {
    const char *execution, *request, *tenant, *key, *status, *profile;
    const struct audit_code *code;
    const struct run_receipt *receipt; /* NULL: a command's, which has none */
};
struct audit {
    int fd;   /* owned; -1: there is no log */
    bool cut; /* its last line is not whole */
};
int audit_open(struct audit *ret, int dir, const char *name, struct err *e);
void audit_write(struct audit *a, const struct audit_line *l);
