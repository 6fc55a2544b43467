#pragma once
/* JSON, out and in.
 *
 * Out: an append-only writer over a struct buf. It places the commas; the caller balances what it
 * opens and closes. Keys and values without a jw_object around them are the inside of an object.
 * Whatever bytes a string holds, what comes out is valid JSON in valid UTF-8. The names start with
 * jw_ because jansson owns json_.
 *
 * In: jansson, strict. Include <jansson.h> to look into the result; json_auto_t releases it. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct json_t;

struct jw {
    struct buf *to; /* borrowed */
    bool comma;     /* the next key or value needs one in front */
};

#define JW_INIT(buf)                                                                               \
    { .to = (buf) }

void jw_object(struct jw *j);
void jw_object_end(struct jw *j);
void jw_array(struct jw *j);
void jw_array_end(struct jw *j);
/* In an object, before each value. */
void jw_key(struct jw *j, const char *key);

/* Text from anyone: control characters, DEL, U+0080 to U+009F, U+2028 and U+2029 are escaped, and
 * each ill-formed piece of UTF-8 becomes one U+FFFD, as Python's errors="replace" does it. */
void jw_strn(struct jw *j, const char *text, size_t len);
/* NULL is written as null. */
void jw_str(struct jw *j, const char *text);
void jw_int(struct jw *j, int64_t v);
void jw_uint(struct jw *j, uint64_t v);
/* The shortest of 15, 16 or 17 digits that reads back the same, always recognisable as a real
 * number ("1.0"); infinities and NaN, which JSON does not have, are null. */
void jw_real(struct jw *j, double v);
void jw_bool(struct jw *j, bool v);
void jw_null(struct jw *j);
/* A string whose inside needs no more escaping: json_escape made it, or it is base64. */
void jw_escaped(struct jw *j, const char *inside, size_t len);
/* One value that is JSON already. */
void jw_raw(struct jw *j, const char *json, size_t len);
/* A tree of jansson's; `otherwise`, which is JSON, where that is NULL. */
void jw_json(struct jw *j, const struct json_t *value, const char *otherwise);
/* The members of a compact object that is JSON already, among those of the open one. */
void jw_members(struct jw *j, const char *object, size_t len);

/* Key and value in one call. */
void jw_key_str(struct jw *j, const char *key, const char *text);
void jw_key_int(struct jw *j, const char *key, int64_t v);
void jw_key_uint(struct jw *j, const char *key, uint64_t v);
void jw_key_real(struct jw *j, const char *key, double v);
void jw_key_bool(struct jw *j, const char *key, bool v);
void jw_key_null(struct jw *j, const char *key);

/* The inside of a JSON string for these bytes, without the quotes: for those who stream one. */
void json_escape(struct buf *b, const char *text, size_t len);

/* Whether it is UTF-8 throughout. */
bool json_is_utf8(const char *text, size_t len);

#define JSON_DEPTH_MAX  64 /* levels of arrays and objects, unless a caller wants less */
#define JSON_VALUES_MAX 500000

/* An object or array and nothing after it; duplicate keys, NUL in strings, ill-formed UTF-8,
 * more than `depth` levels and more than JSON_VALUES_MAX values are refused. The error is of kind
 * "bad_json" and ends in line and column. *ret is the caller's reference. */
int json_read(const char *text, size_t len, unsigned depth, struct json_t **ret, struct err *e);
