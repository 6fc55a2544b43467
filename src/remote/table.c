/* See table.h. */

#include "remote/table.h"

#include "base/fd.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GAP 2

void table_add(struct table *t, const char *const *row) {
    t->cells = xrealloc(t->cells, (t->n + t->columns) * sizeof *t->cells);
    for (unsigned i = 0; i < t->columns; i++) {
        struct buf b = BUF_INIT;
        text_add_plain(&b, row[i], strlen(row[i]));
        buf_addc(&b, '\0'); /* so that there is always something to take */
        t->cells[t->n++] = buf_take(&b);
    }
}

/* Characters, not bytes: close enough to columns for names. */
static size_t width(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static size_t widest(const struct table *t, unsigned column) {
    size_t most = 0;
    for (unsigned i = column; i < t->n; i += t->columns)
        most = width(t->cells[i]) > most ? width(t->cells[i]) : most;
    return most;
}

void table_print(const struct table *t) {
    AUTO_BUF out = BUF_INIT;
    AUTO_FREE size_t *widths = xcalloc(t->columns, sizeof *widths);
    for (unsigned i = 0; i < t->columns; i++)
        widths[i] = widest(t, i);
    for (unsigned row = 0; row < t->n; row += t->columns) {
        for (unsigned i = 0; i < t->columns; i++) {
            buf_adds(&out, t->cells[row + i]);
            size_t pad = widths[i] + GAP - width(t->cells[row + i]);
            while (pad-- && i + 1 < t->columns)
                buf_addc(&out, ' ');
        }
        while (out.len && out.data[out.len - 1] == ' ')
            out.data[--out.len] = '\0';
        buf_addc(&out, '\n');
    }
    fputs(out.data, stdout);
}

void table_done(struct table *t) {
    for (unsigned i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->n = 0;
}

void table_line(const char *text) {
    AUTO_BUF line = BUF_INIT;
    text_add_plain(&line, text, strlen(text));
    puts(line.data);
}

void table_json(const json_t *value) {
    /* At a terminal nothing but ASCII: what is between the quotes may be anybody's. */
    size_t flags = JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);
    AUTO_FREE char *text = json_dumps(value, flags);
    puts(text ? text : "null");
}

void table_print_or(const struct table *t, const char *name, json_t *all) {
    if (!all) {
        table_print(t);
        return;
    }
    json_auto_t *root = json_pack("{s:O}", name, all);
    table_json(root);
}
