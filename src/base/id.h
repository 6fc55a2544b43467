#pragma once
/* Names that nobody can guess: a prefix that says what it is, and 128 random bits. */

#include <stddef.h>

#define ID_DIGITS 32
#define ID_MAX    48 /* room for a prefix of up to 15 bytes, the digits and the NUL */

/* PREFIX and 32 hexadecimal digits into out; returns out. cap must be enough for all of it.
 * SECURITY: an id opens what it names, so there is no weaker way when the kernel gives no random
 * bits (or there is no room): the process ends. */
const char *id_make(const char *prefix, char *out, size_t cap);
