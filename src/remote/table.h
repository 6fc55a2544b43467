#pragma once
/* Tables for people. What others wrote is made plain: no control character reaches the terminal. */

#include "base/buf.h"

struct table {
    unsigned columns;
    char **cells; /* owned */
    unsigned n;
};

/* One row of t->columns texts, which are copied. */
void table_add(struct table *t, const char *const *row);
void table_print(const struct table *t);
void table_done(struct table *t);
/* One line of plain text. */
void table_line(const char *text);
