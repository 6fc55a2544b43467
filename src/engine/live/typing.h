#pragma once
/* What it costs the kernel to take what is typed at a terminal. */

#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct termios;

/* A piece of what is to be typed: how many bytes of it, and nanoseconds. */
struct typing_piece {
    size_t n;
    uint64_t cost_ns;
};

/* The settings may be NULL: unknown. */
struct typing_piece typing_piece(const struct termios *t, const void *bytes, size_t len,
                                 uint64_t wake_ns);
/* To wake all who can wait for a terminal in a sandbox with these limits. */
uint64_t typing_wake_ns(const struct limits *l);
/* Whether a byte may have a meaning under one of them that it does not have under the other. */
bool typing_differs(const struct termios *a, const struct termios *b);
