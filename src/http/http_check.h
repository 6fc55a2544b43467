#pragma once
/* What makes a request ambiguous, and the reply to one that is. */

#include "base/buf.h"

#include <stdbool.h>

struct http_req;

/* What is wrong with the request's head, in words, or NULL. */
const char *http_check_head(struct http_req *r, const char *method, const char *version);
/* The same for what has come of its body; NULL too when only a later request is wrong. */
const char *http_check_framing(const struct http_req *r);
/* Decodes %XX in place; false on a bad escape, a NUL, or a control byte. */
bool http_decode(char *text, bool plus_is_space);

/* The JSON body of an error that the handlers never see. */
struct http_error {
    const char *code, *message, *remediation, *detail;
    bool retryable;
};
void http_error_write(const struct http_error *e, struct buf *out);
/* The body of a 400, appended. */
void http_refusal(const char *wrong, struct buf *out);
