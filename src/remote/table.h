#pragma once
/* Tables for people. What others wrote is made plain: no control character reaches the terminal. */

#include "base/buf.h"

struct json_t;

struct table {
    unsigned columns;
    char **cells; /* owned */
    unsigned n;
};

/* One row of t->columns texts, which are copied. */
void table_add(struct table *t, const char *const *row);
void table_print(const struct table *t);
void table_done(struct table *t);
/* Prints it, or instead of it `all`, a list, as the member `name` of an object. */
void table_print_or(const struct table *t, const char *name, struct json_t *all);
/* One line of plain text. */
void table_line(const char *text);
/* JSON in one line; at a terminal without what could steer it. */
void table_json(const struct json_t *value);
