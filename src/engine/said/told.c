/* See told.h. */

#include "engine/said/told.h"

#include "base/json.h"

void told_start(const char *id, const char *kernel_id, bool resumed, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "id", id);
    if (kernel_id)
        jw_key_str(&j, "kernel_id", kernel_id);
    if (resumed)
        jw_key_bool(&j, "resumed", true);
    jw_object_end(&j);
}

void told_input(const char *prompt, bool password, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "prompt", prompt ? prompt : "");
    jw_key_bool(&j, "password", password);
    jw_object_end(&j);
}

void told_error(const char *name, const char *value, char *const *lines, unsigned n,
                struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "name", name);
    jw_key_str(&j, "value", value);
    jw_key(&j, "traceback");
    jw_array(&j);
    for (unsigned i = 0; i < n; i++)
        jw_str(&j, lines[i]);
    jw_array_end(&j);
    jw_object_end(&j);
}
