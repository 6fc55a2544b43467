#pragma once
/* The errors of endpoints in a specification: a response for each status that an endpoint is
 * refused with, written once for all that have the same codes. For openapi.c. */

#include "base/json.h"
#include "http/openapi.h"

#include <stddef.h>

struct refusals {
    struct refusal_set {
        const struct schema *body; /* borrowed */
        const struct api_code *codes;
        size_t n; /* all with the same status */
        char name[80];
    } * all; /* owned */
    size_t n;
};

/* The members of `responses` for the errors of that endpoint. */
void refusals_write(struct jw *j, struct refusals *r, const struct api_doc *d);
/* The member `responses` of the components. */
void refusals_write_all(struct jw *j, const struct refusals *r);
void refusals_done(struct refusals *r);
