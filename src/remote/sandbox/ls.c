/* `cloche sandbox ls`. */

#include "remote/sandbox/ls.h"

#include "base/fd.h"
#include "base/text.h"
#include "remote/net/pages.h"
#include "remote/sandbox/manage.h"
#include "remote/sandbox/place.h"
#include "remote/table.h"
#include "remote/value.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct listing {
    const struct sandbox_options *o;
    const char *only; /* this name, or NULL for all */
    struct table table;
    json_t *all; /* owned, or NULL */
};

/* "drwxr-xr-x" */
static void write_mode(const json_t *entry, char out[11]) {
    const char *type = value_text(entry, "type");
    unsigned long mode = strtoul(value_text(entry, "mode"), NULL, 8);
    static const char bits[] = "rwxrwxrwx";
    out[0] = strcmp(type, "directory") == 0 ? 'd' : strcmp(type, "symlink") == 0 ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        out[i + 1] = mode & (0400u >> i) ? bits[i] : '-';
    out[10] = '\0';
}

static void add_row(struct listing *l, const json_t *entry) {
    AUTO_BUF name = BUF_INIT;
    AUTO_BUF size = BUF_INIT;
    const char *type = value_text(entry, "type"), *target = value_text(entry, "target");
    buf_adds(&name, value_text(entry, l->o->recursive ? "path" : "name"));
    if (strcmp(type, "directory") == 0)
        buf_addc(&name, '/');
    if (!l->o->details) {
        table_line(name.data);
        return;
    }
    if (*target)
        buf_addf(&name, " -> %s", target);
    char mode[11], when[32] = "?";
    struct tm tm;
    write_mode(entry, mode);
    if (text_date(json_number_value(json_object_get(entry, "modified")), &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    buf_addf(&size, "%" JSON_INTEGER_FORMAT,
             json_integer_value(json_object_get(entry, "size_bytes")));
    const char *row[] = {mode, size.data, when, name.data};
    table_add(&l->table, row);
}

static void add_page(struct listing *l, const json_t *page) {
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        if (l->only && strcmp(value_text(entry, "name"), l->only) != 0)
            continue;
        if (l->all)
            json_array_append(l->all, entry);
        else
            add_row(l, entry);
    }
}

static int read_pages(struct sandbox_cmd *b, struct listing *l, const char *url, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_PAGES pages = PAGES_INIT;
    for (int more = 1; more > 0;) {
        json_auto_t *page = NULL;
        buf_clear(&path);
        buf_addf(&path, "%s?limit=1000%s", url, l->o->recursive ? "&recursive=true" : "");
        pages_add(&pages, &path);
        if (sandbox_cmd_ask(b, "GET", path.data, NULL, &page, e) < 0)
            return -1;
        more = pages_next(&pages, page, "entries", e);
        if (more < 0)
            return -1;
        add_page(l, page);
    }
    return 0;
}

/* A file is looked up in its directory: by itself it is only bytes. */
int sandbox_ls(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF sandbox = BUF_INIT;
    AUTO_BUF url = BUF_INIT;
    AUTO_FREE char *path = NULL;
    enum place there = PLACE_NONE;
    const char *word = b->o.words.n > 1 ? b->o.words.items[1] : "";
    if (place_path(word, &path, NULL, e) < 0 || sandbox_find(b, &sandbox, e) < 0 ||
        place_look(b, sandbox.data, path, &there, e) < 0)
        return -1;
    AUTO_FREE char *only = there == PLACE_FILE ? xstrdup(place_name(path)) : NULL;
    if (only) {
        b->o.recursive = false;
        path[strlen(path) - strlen(only)] = '\0';
    }
    struct listing l = {
        .o = &b->o, .only = only, .table = {.columns = 4}, .all = b->o.json ? json_array() : NULL};
    place_url(&url, sandbox.data, "files", path);
    int rc = read_pages(b, &l, url.data, e);
    if (rc == 0)
        table_print_or(&l.table, "entries", l.all);
    json_decref(l.all);
    table_done(&l.table);
    return rc;
}
