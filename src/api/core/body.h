#pragma once
/* A large body: read, checked and freed beside the loop (crew.h), and whatever its long texts have
 * to become is made there, too: what handlers do with them afterwards is to take it. For api/ only.
 */

#include "api/core/call.h"

#define BODY_LARGE (64u << 10) /* bytes; smaller ones are read at once */

struct body;

/* What a long text has become. */
struct body_text {
    const json_t *of;
    int fd; /* the body's: a sealed memfd of the text, or of what it means in base64; or -1 */
    uint8_t sha256[32]; /* of code */
    bool is_bad;        /* it is not base64 */
    struct err why;     /* why there is no memfd */
};

/* Reads the body that has come; c->large is it. Then `then` is called, unless the call is over
 * before. */
void body_read(struct call *c, void (*then)(struct call *c));
/* What came of it: 0 and *ret (a reference), or -1 with the reply as from fields_read. */
int body_take(struct call *c, json_t **ret, int *ret_status, struct buf *reply);
/* The call is over. NULL is none. */
void body_leave(struct body *b);

/* For work that outlives its call; NULL is none. */
struct body *body_ref(struct body *b);
void body_unref(struct body *b);

/* The hash for its Idempotency-Key (replay_hash); false when it has to be made. */
bool body_hash(const struct body *b, uint8_t ret[32]);
/* What a text of it has become; NULL when it has become nothing, or there is no such body. */
const struct body_text *body_find(const struct body *b, const json_t *value);
/* A sealed memfd of a text of the request, made now if it was short. */
int body_memfd(const struct call *c, const json_t *text, int *ret_fd, struct err *e);
/* What the audit log is to say of the code of a request. */
void body_audit(const struct call *c, const json_t *code, struct audit_code *ret);
