#pragma once
/* A form whose field `file` is what matters: so the native API and Sandbox Runtime take uploads. */

#include "http/form.h"

struct call;
struct schema;

extern const struct schema upload_schema;

struct form_file {
    bool there;    /* the file was, or is being read */
    bool plain;    /* a field of that name without a filename was there */
    bool over;     /* another file after the first: nobody's */
    char text[64]; /* of the plain one */
};

/* Whether this is a piece of the file: anything else is nobody's. */
bool form_file_is(struct form_file *f, const struct form_part *p);
/* The 422 for a form without it; `f` may be NULL. */
void form_file_missing(struct call *c, const struct form_file *f);
