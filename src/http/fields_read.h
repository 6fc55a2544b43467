#pragma once
/* The body of a request, from bytes to a tree that was checked against its table (fields.h). */

#include "http/fields.h"

/* Whether there must be a body; without one all fields have their defaults. */
bool fields_want_body(const struct schema *s);

/* Whether a body that says to be of this type (or NULL) is read as JSON. */
bool fields_take_type(const struct schema *s, const char *content_type);

/* 0 and *ret (the caller's reference), or -1 and `reply` holds the whole JSON body for *ret_status
 * (422, or 400 when the body is not UTF-8). */
int fields_read(const struct schema *s, const char *content_type /* or NULL */, const char *text,
                size_t len, json_t **ret, int *ret_status, struct buf *reply);
