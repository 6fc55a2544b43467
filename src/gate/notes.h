#pragma once
/* What the audit log is told of a sandbox: the first use of a target, and refusals, each once a
 * second at most; and not more of either than the log can bear. */

#include "net/bucket.h"

#include <stdbool.h>
#include <stdint.h>

#define NOTES_REMEMBERED 128

struct notes {
    struct {
        uint64_t hash, at_ms;
    } told[NOTES_REMEMBERED];
    struct net_bucket uses, refusals;
    uint64_t key;
};

struct attachment;

struct note {
    uint32_t process;
    bool refused;
    const char *target, *rule;
};

void notes_init(struct notes *n);
void note_tell(struct attachment *a, const struct note *n);
/* For notes.c and its test. */
bool notes_is_due(struct notes *s, const struct note *n, uint64_t now_ms);
