#pragma once
/* The audit log: one JSON line for each execution and each command: who, when, which code (its
 * hash), how it ended, what was denied. And one for each target of the network that one of them
 * reached for the first time, or was refused. Append only. The code itself is in it only where the
 * operator wants that.
 *
 * Nothing runs unaudited, unless the operator lets it: room for lines is taken ahead, so that what
 * else is on the disk cannot have it, and when no more can be taken, nothing new begins before the
 * last of it is used. Lines that cannot be written all the same wait in memory, and are written
 * when that works again. The log is bounded: a file that is full gets a number, and the oldest go.
 */

#include "engine/core/engine.h"
#include "engine/core/outcome.h"

struct caller;
struct link_claim;
struct problem;

struct audit_code {
    char sha256[65];
    size_t len;
    char *text; /* owned: the code, or NULL when it is not to be kept */
};
void audit_code(struct audit_code *to, const char *code, size_t len, bool keep);
/* The same when its hash is known. */
void audit_code_of(struct audit_code *to, const uint8_t hash[32], const char *code, size_t len,
                   bool keep);
void audit_code_done(struct audit_code *c);

struct audit_line {
    const struct caller *who;
    const char *execution, *status, *profile;
    const struct audit_code *code;
    const struct receipt *receipt; /* NULL: a command's, which has none */
    const struct denials *denied;
};

/* The first use of a target that a rule lets in, or a refusal. */
struct audit_network {
    const char *tenant, *id; /* of the program or live sandbox */
    const char *target, *rule;
    bool refused;
};

struct audit_options {
    struct loop *loop;
    int dir;            /* borrowed */
    uint64_t max_bytes; /* of one file */
    unsigned files;     /* old ones that are kept */
    bool lets;          /* what cannot be audited runs all the same */
};

struct audit {
    struct audit_options o;
    int fd;           /* owned; -1: it could not be opened */
    uint64_t taken;   /* bytes from the file's beginning that it has room for */
    bool plain;       /* the file system takes no room ahead */
    char why[200];    /* what is wrong; "" when nothing is */
    struct buf lines; /* that could not be written yet */
    size_t nlines;
    uint64_t failures, lost;
    struct timer again;
};

/* What is wrong is told by audit_trouble, and tried again. */
void audit_open(struct audit *ret, const struct audit_options *o);
void audit_write(struct audit *a, const struct audit_line *l);
void audit_network(struct audit *a, const struct audit_network *n);
/* Somebody made a link to a server in a sandbox. */
void audit_link(struct audit *a, const struct caller *who, const struct link_claim *link);
/* Before something begins that is to be audited: -1 when it must not. */
int audit_lets(struct audit *a, struct problem *ret);
bool audit_refuses(const struct audit *a);
/* Why it cannot be written, or will soon not be; NULL when all is well. */
const char *audit_trouble(const struct audit *a);
/* Gives back the room that it did not need. */
void audit_close(struct audit *a);
