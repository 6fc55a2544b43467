#pragma once
/* "Did you mean …?": of the words that there are, the one that a mistyped one is most like. */

#include <stddef.h>

struct nearest {
    const char *word; /* borrowed, as is what is offered */
    const char *best; /* or NULL */
    size_t distance;  /* of that */
};

void nearest_offer(struct nearest *n, const char *candidate);
/* NULL: none is like it. */
const char *nearest_found(const struct nearest *n);
/* Where an error message ends: " (did you mean X?)", or "". Returns out. */
const char *nearest_ask(const struct nearest *n, char *out, size_t cap);
