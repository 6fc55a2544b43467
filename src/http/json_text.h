#pragma once
/* JSON that came from outside, as a tree; faults are told as Python's json module tells them. */

#include <jansson.h>
#include <stddef.h>

struct json_fault {
    const char *why; /* a constant */
    size_t at;       /* in bytes */
};

/* At least as many as there are values in it, and found a hundred times as quickly as they are made
 * into a tree; no more than `most` are looked for. */
size_t json_text_values(const char *text, size_t len, size_t most);

/* The tree, which is the caller's, or NULL and the fault. */
json_t *json_text_parse(const char *text, size_t len, struct json_fault *f);
