#pragma once
/* JSON that came from outside, as a tree; faults are told as Python's json module tells them. */

#include <jansson.h>
#include <stddef.h>

struct json_fault {
    const char *why; /* a constant */
    size_t at;       /* in bytes */
};

/* The tree, which is the caller's, or NULL and the fault. */
json_t *json_text_parse(const char *text, size_t len, struct json_fault *f);
