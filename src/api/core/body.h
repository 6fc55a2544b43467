#pragma once
/* A large body, or one of many values: read, checked and freed beside the loop (crew.h). Whatever
 * its long texts have to become is made there as well, by the route's `prepare`; handlers take it.
 *
 * SECURITY: a tree takes up to seventy times the bytes of its text, so it counts as the bytes of
 * bodies do, before it is made and for as long as it is there. For api/ only. */

#include "api/core/call.h"

#define BODY_LARGE     (64u << 10) /* bytes; smaller ones are read at once */
#define BODY_VALUES    500u        /* values; a tree of fewer is made at once */
#define BODY_LONG_TEXT 32768u      /* bytes; shorter texts are not worth preparing */

struct body;

/* What a long text has become. */
struct body_text {
    const json_t *of, *part; /* NULL: it is dropped; and see body_part */
    int fd; /* the body's: a sealed memfd of the text, or of what it means in base64; or -1 */
    uint8_t sha256[32]; /* when body_text_hash was called */
    bool is_bad;        /* it is not base64 */
    struct err why;     /* why there is no memfd */
};

/* ---- for a route's `prepare`: beside the loop, it may touch nothing else ---- */

/* NULL: `of` is no text, or a short one. The pointer is good until the next call. */
struct body_text *body_add_text(struct body *b, const json_t *of);
/* The texts that come now are in this part of the request, which may be dropped by itself. */
void body_part(struct body *b, const json_t *part);
void body_text_hash(struct body_text *t);
void body_text_seal(struct body_text *t, const char *data, size_t len);

/* ---- for call.c ---- */

/* Reads the body that has come, which makes c->large, and then calls `then`, unless the call ends
 * before. */
void body_read(struct call *c, void (*then)(struct call *c));
/* How many bytes the tree would take if there is no room for it; 0: there was room. */
size_t body_lacks(const struct body *b);
/* The outcome: 0 and *ret (a reference), or -1 with the reply as from fields_read. */
int body_take(struct call *c, json_t **ret, int *ret_status, struct buf *reply);
/* When the call is over; `b` may be NULL. */
void body_leave(struct body *b);

/* ---- for jobs; NULL stands for a body that was small ---- */

/* For work that outlives its call. */
struct body *body_ref(struct body *b);
void body_unref(struct body *b);
/* Takes a part that nobody needs any more, and that is out of the tree: it is freed beside the
 * loop, and counts no longer. */
void body_drop(struct body *b, json_t *part);

/* What requests with the same Idempotency-Key must have in common: the path and these bytes. */
void body_request_hash(const char *path, const void *data, size_t len, uint8_t ret[32]);
/* The hash of a large body, if it is made already; else false. */
bool body_hash(const struct body *b, uint8_t ret[32]);
/* What one of its texts has become; NULL: nothing. */
const struct body_text *body_find(const struct body *b, const json_t *value);
/* A sealed memfd of a text of the request, made now if it was short. */
int body_memfd(const struct body *b, const json_t *text, int *ret_fd, struct err *e);
/* What the audit log is to say of the code of a request. */
void body_audit(const struct body *b, const json_t *code, bool keep, struct audit_code *ret);
