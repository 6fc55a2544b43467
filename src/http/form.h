#pragma once
/* multipart/form-data (RFC 7578) as it comes, in any pieces. Memory is bounded: what a part's head
 * may have, and as much of its content as could be the beginning of a boundary. */

#include <stdbool.h>
#include <stddef.h>

struct form;

struct form_part {
    const char *name;     /* "" when it has none */
    const char *filename; /* NULL for a plain field */
    const char *data;
    size_t len;
    bool first; /* of this part: comes once, and without data */
};
/* False: no more of the form is wanted. */
typedef bool form_fn(void *arg, const struct form_part *p);

/* NULL when the Content-Type (which may be NULL) is not a form's. */
struct form *form_new(const char *content_type, form_fn *fn, void *arg);
void form_free(struct form *f);
void form_add(struct form *f, const char *data, size_t len);
/* Whether its last boundary has come. */
bool form_is_whole(const struct form *f);
