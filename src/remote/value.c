/* See value.h. */

#include "remote/value.h"

#include "base/fd.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int value_dump(const json_t *value, struct buf *to, struct err *e) {
    AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return err_set(e, ENOMEM, "the request cannot be written");
    buf_clear(to);
    buf_adds(to, text);
    return 0;
}

int value_set_text(json_t *to, const char *key, const char *what, const char *text, size_t len,
                   struct err *e) {
    json_t *v = memchr(text, '\0', len) ? NULL : json_stringn(text, len);
    if (!v)
        return err_user(e, "bad_text", "%s is not UTF-8 text without NUL bytes", what);
    json_object_set_new(to, key, v);
    return 0;
}

const char *value_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}
