#pragma once
/* What the sandbox refused to a run, a cell or a command; each once, up to a number. */

#include "base/json.h"
#include "base/schema.h"

#include <stdint.h>

#define MAX_DENIED 16

struct denial {
    char op[200], detail[400], rule[100]; /* as I_DENIED has them */
};

struct denials {
    struct denial all[MAX_DENIED];
    unsigned n;
};

void denials_add(struct denials *d, const char *op, const char *detail, const char *rule);
/* So many attempts to reach an address that no route leads to; 0: none. */
void denials_add_network(struct denials *d, uint64_t attempts);
/* The member `denied` of an object that is open: a list of these. */
extern const struct schema denial_schema;
void denials_put(const struct denials *d, struct jw *j);
