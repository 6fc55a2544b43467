/* See record.h. */

#include "profile/record.h"

#include "base/fd.h"
#include "config/made.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *word_of(const json_t *o, const char *key) {
    return json_string_value(json_object_get(o, key));
}

json_t *record_lock(const json_t *installed) {
    json_t *lines = json_array(), *one;
    bool all = true;
    size_t i;
    json_array_foreach(installed, i, one) {
        all = all && word_of(one, "sha256") && !word_of(one, "url");
    }
    json_array_foreach(installed, i, one) {
        AUTO_BUF line = BUF_INIT;
        if (word_of(one, "url"))
            buf_addf(&line, "%s @ %s", word_of(one, "name"), word_of(one, "url"));
        else
            buf_addf(&line, "%s==%s", word_of(one, "name"), word_of(one, "version"));
        if (all)
            buf_addf(&line, " --hash=sha256:%s", word_of(one, "sha256"));
        json_array_append_new(lines, json_string(line.data));
    }
    return lines;
}

static int write_file(const char *dir, const char *name, const struct buf *text, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "%s/%s", dir, name);
    AUTO_FD fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, text->data, text->len, e) < 0)
        return err_user(e, "output_failed", "%s: %s", path.data, strerror(errno));
    return 0;
}

int record_write(const char *dir, const json_t *record, struct err *e) {
    json_auto_t *lines = record_lock(json_object_get(record, "installed"));
    AUTO_FREE char *text = json_dumps(record, JSON_INDENT(2));
    AUTO_BUF whole = BUF_INIT;
    AUTO_BUF lock = BUF_INIT;
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line) {
        buf_addf(&lock, "%s\n", json_string_value(line));
    }
    buf_addf(&whole, "%s\n", text ? text : "");
    if (write_file(dir, MADE_LOCK, &lock, e) < 0)
        return -1;
    return write_file(dir, MADE_FILE, &whole, e);
}
