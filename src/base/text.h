#pragma once
/* Text from outside: its characters, and what of it may be shown; times as text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct buf;

/* The length of the well-formed UTF-8 character at `text`, of which `left` bytes are there, or 0.
 */
size_t text_char(const char *text, size_t left, uint32_t *ret);

/* Appends a character as UTF-8; what is none, such as a surrogate, as U+FFFD. */
void text_add_char(struct buf *to, uint32_t c);

/* Characters of a text that is well-formed. */
size_t text_chars(const char *text, size_t len);

/* SECURITY: whether a character shows as what it is: no control, nothing that turns the direction
 * of writing, hides, or has no width. */
bool text_is_plain(uint32_t c);

/* Appends the text for a terminal: what is not plain is escaped (\x1b, \u202e). */
void text_add_plain(struct buf *to, const char *text, size_t len);

/* A time in seconds since 1970, in UTC or here, for strftime(3). False: it is in none of the years
 * 1 to 9999, as a time that anybody could set may be, and *ret is not written. */
bool text_date(double seconds, struct tm *ret);
bool text_date_here(double seconds, struct tm *ret);
