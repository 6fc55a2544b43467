/* See file.h. Values become text here and are read like those of flags and variables later,
 * so that one place knows the bounds. */

#include "config/file.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "config/options.h"
#include "config/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)

/* A number or string as the text that a flag would have; NULL for anything else. */
static char *scalar_text(const json_t *v) {
    struct buf b = BUF_INIT;
    switch (json_typeof(v)) {
    case JSON_STRING:
        buf_adds(&b, json_string_value(v));
        break;
    case JSON_INTEGER:
        buf_addf(&b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        buf_addf(&b, "%.12g", json_real_value(v));
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return NULL;
    }
    return buf_take(&b);
}

/* Rules in a list are as good as words; NULL: there is something else in it. */
static char *words_of(const json_t *list) {
    struct buf b = BUF_INIT;
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v) {
        if (!json_is_string(v)) {
            buf_done(&b);
            return NULL;
        }
        buf_addf(&b, "%s%s", i ? " " : "", json_string_value(v));
    }
    return buf_take(&b);
}

/* The value as text of this setting; NULL: it is nothing that it could be. */
static char *setting_text(size_t i, const json_t *v) {
    enum setting_type type = i < settings_count ? settings[i].type : SETTING_TEXT;
    char *words = type == SETTING_RULES && json_is_array(v) ? words_of(v) : NULL;
    if (words)
        return words;
    bool is_json = type == SETTING_RULES ? json_is_object(v) || json_is_array(v)
                   : type == SETTING_ENV || type == SETTING_SETS ? json_is_object(v)
                                                                 : false;
    return is_json ? json_dumps(v, JSON_COMPACT) : scalar_text(v);
}

static int read_key(const char *path, const char *key, json_t *v, struct options *o,
                    struct err *e) {
    char quoted[64];
    log_quote(key, quoted, sizeof quoted);
    if (strcmp(key, "profiles") == 0) {
        if (!json_is_object(v))
            return err_user(e, "bad_config", "%s: profiles must be an object", path);
        options_set_profiles(o, json_incref(v));
        return 0;
    }
    size_t i = setting_find(key);
    AUTO_FREE char *text = setting_text(i, v);
    if (!options_set_file(o, key, text ? text : ""))
        return err_user(e, "bad_config", "%s: there is no setting %s", path, quoted);
    if (!text)
        return err_user(e, "bad_config", "%s: %s must be a number or a string", path, quoted);
    return 0;
}

int config_file_parse(const char *path, const char *text, size_t len, struct options *o,
                      struct err *e) {
    json_auto_t *root = NULL;
    if (json_read(text, len, 8, &root, e) < 0)
        return err_wrap(e, "%s", path);
    if (!json_is_object(root))
        return err_user(e, "bad_config", "%s: must be a JSON object", path);
    const char *key;
    json_t *v;
    json_object_foreach(root, key, v) {
        if (read_key(path, key, v, o, e) < 0)
            return -1;
    }
    return 0;
}

int config_file_read(const char *path, struct options *o, struct err *e) {
    AUTO_FREE char *text = xmalloc(FILE_MAX + 1);
    size_t len;
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const char *kind = errno == ENOENT ? "no_such_file" : "not_readable";
        return err_user(e, kind, "configuration file %s: %s", path, strerror(errno));
    }
    if (fd_read_all(fd, text, FILE_MAX + 1, &len, e) < 0)
        return err_user(e, "not_readable", "configuration file %s: %s", path, strerror(e->code));
    return config_file_parse(path, text, len, o, e);
}
