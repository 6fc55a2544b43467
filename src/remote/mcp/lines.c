/* See lines.h. */

#include "remote/mcp/lines.h"

#include <string.h>

/* ---- the id of a line that is too long ----
 *
 * Not a reader of JSON: it knows strings, depth, and which string of the outermost object is a
 * key. What it makes of a line that is no JSON is checked where it is used. */

static void skim_string(struct lines *l, char c) {
    if (l->escaped) {
        l->escaped = false;
    } else if (c == '\\') {
        l->escaped = true;
    } else if (c == '"') {
        l->in_string = false;
        return;
    }
    if (l->is_key && l->key_len < sizeof l->key)
        l->key[l->key_len++] = c;
}

static void skim_plain(struct lines *l, char c) {
    if (c == '"') {
        l->in_string = true;
        if (l->is_key)
            l->key_len = 0;
    } else if (c == '{' || c == '[') {
        l->depth++;
        l->is_key = l->depth == 1 && c == '{';
    } else if (c == '}' || c == ']') {
        l->depth -= l->depth > 0;
        l->in_id = l->is_key = false;
    } else if (l->depth == 1 && c == ':') {
        l->in_id = l->is_key && l->key_len == 2 && memcmp(l->key, "id", 2) == 0;
        l->is_key = false;
    } else if (l->depth == 1 && c == ',') {
        l->in_id = false;
        l->is_key = true;
    }
}

static void skim(struct lines *l, const char *data, size_t len) {
    for (size_t i = 0; i < len; i++) {
        bool was_in_id = l->in_id;
        if (l->in_string)
            skim_string(l, data[i]);
        else
            skim_plain(l, data[i]);
        if (was_in_id && l->in_id && l->id_len < sizeof l->id - 1)
            l->id[l->id_len++] = data[i];
    }
}

static void skip_begin(struct lines *l, size_t len) {
    l->skipping = true;
    l->depth = 0;
    l->in_string = l->escaped = l->is_key = l->in_id = false;
    l->key_len = l->id_len = 0;
    skim(l, l->in.data + l->at, len);
}

/* ---- lines ---- */

void lines_add(struct lines *l, const char *data, size_t len) {
    buf_drop(&l->in, l->at);
    l->scanned -= l->at;
    l->at = 0;
    buf_add(&l->in, data, len);
}

void lines_end(struct lines *l) {
    if (l->skipping || l->in.len > l->at)
        lines_add(l, "\n", 1);
}

static enum line_got skip_end(struct lines *l, const char **ret, size_t *ret_len) {
    l->skipping = false;
    l->id[l->id_len] = '\0';
    *ret = l->id_len ? l->id : "null";
    *ret_len = strlen(*ret);
    return LINE_TOO_LONG;
}

enum line_got lines_next(struct lines *l, const char **ret, size_t *ret_len) {
    for (;;) {
        const char *from = l->in.data + l->scanned;
        const char *end = memchr(from, '\n', l->in.len - l->scanned);
        size_t len = (end ? (size_t)(end - l->in.data) : l->in.len) - l->at;
        if (l->skipping || len > LINE_MAX_BYTES) {
            if (l->skipping)
                skim(l, l->in.data + l->at, len);
            else
                skip_begin(l, len);
            l->at = l->scanned = end ? (size_t)(end + 1 - l->in.data) : l->in.len;
            return end ? skip_end(l, ret, ret_len) : LINE_NONE;
        }
        if (!end) {
            l->scanned = l->in.len;
            return LINE_NONE;
        }
        const char *line = l->in.data + l->at;
        l->at = l->scanned = (size_t)(end + 1 - l->in.data);
        while (len && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
            len--;
        if (len) {
            *ret = line;
            *ret_len = len;
            return LINE_GOT;
        }
    }
}

void lines_done(struct lines *l) {
    buf_done(&l->in);
}
