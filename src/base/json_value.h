#pragma once
/* Looking at JSON text without making a tree of it. */

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Whether it is one JSON value of any kind, at most JSON_VALUE_DEPTH levels deep, and nothing else.
 */
#define JSON_VALUE_DEPTH 512
bool json_is_value(const char *text, size_t len);

/* A member of an object that we wrote ourselves, compact: its text, or nothing. Looks no further
 * than that, and makes nothing of what is before it. */
struct json_span {
    const char *at; /* NULL: there is none */
    size_t len;
};
/* The value that begins there, in such text. */
struct json_span json_first(const char *text, size_t len);
struct json_span json_member(const char *text, size_t len, const char *name);
/* The same for a name that is JSON, with its quotes, as the one who wrote the object escapes it. */
struct json_span json_member_as(const char *text, size_t len, const char *json_name);

/* What the inside of a valid JSON string means, without the quotes: NUL bytes too, and U+FFFD for
 * half of a surrogate pair. */
void json_unescape(struct buf *to, const char *inside, size_t len);
/* From `at` on, the first place within such an inside that is in no escape and no character. */
size_t json_inside_cut(const char *inside, size_t len, size_t at);
