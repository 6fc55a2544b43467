#pragma once
/* The values that a key is made of: what they may be, and how bytes are written. For keys/ only. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_ID_PREFIX "key_"
#define KEY_ID_BYTES  8

/* `out` has room for two digits a byte and a NUL. */
void key_hex_write(const uint8_t *bytes, size_t n, char *out);
/* Lower case only: one value has one form. */
bool key_hex_read(const char *text, uint8_t *out, size_t n);

/* -1 with an error of that kind, which names the field. */
int key_check_word(const char *kind, const char *field, const char *text, struct err *e);
int key_check_limit(const char *kind, const char *field, double v, double min, struct err *e);
