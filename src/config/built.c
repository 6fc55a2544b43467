/* See built.h. */

#include "config/built.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#define MAX_INSTALLED 2000
#define MAX_TEXT      1000

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* Made of letters, digits and these, of at most so many bytes. */
static bool is_made_of(const char *text, const char *more, size_t most) {
    if (!text || !*text || strlen(text) > most)
        return false;
    for (; *text; text++) {
        if (!strchr(letters, *text) && !strchr(more, *text))
            return false;
    }
    return true;
}

static bool copy_text(const json_t *from, json_t *to, const char *key, const char *more) {
    const json_t *v = json_object_get(from, key);
    if (!is_made_of(json_string_value(v), more, MAX_TEXT))
        return false;
    json_object_set_new(to, key, json_string(json_string_value(v)));
    return true;
}

int built_installed(const json_t *said, json_t **ret, struct err *e) {
    size_t i;
    json_t *one;
    *ret = json_array();
    if (!json_is_array(said) || json_array_size(said) > MAX_INSTALLED)
        return err_user(e, "build_failed", "it says of no list of packages that it was installed");
    json_array_foreach(said, i, one) {
        json_t *to = json_object();
        json_array_append_new(*ret, to);
        if (!copy_text(one, to, "name", "._-") || !copy_text(one, to, "version", "._+!-") ||
            (json_object_get(one, "sha256") && !copy_text(one, to, "sha256", "")) ||
            (json_object_get(one, "url") && !copy_text(one, to, "url", ":/@._+-~%=&?#")))
            return err_user(e, "build_failed", "package %zu of what was installed has no name",
                            i + 1);
    }
    return 0;
}

const char *built_version(const json_t *result) {
    const char *v = json_string_value(json_object_get(result, "python"));
    return v && strlen(v) < 16 && strspn(v, "0123456789.") == strlen(v) && v[0] == '3' ? v : NULL;
}
