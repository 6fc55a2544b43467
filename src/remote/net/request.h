#pragma once
/* What `cloche run` asks for, as the body of POST /v1/execute. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct job;
struct remote;

struct request {
    struct buf body;
    char (*uploads)[64]; /* owned: ids of what had to be sent beforehand */
    unsigned nuploads;
    int signal; /* that came meanwhile, or 0: then there is no request */
};
#define REQUEST_INIT                                                                               \
    { .body = BUF_INIT }

/* Reads our stdin to its end if the program is to have it, and sends large files. When the server
 * refuses one, j->outcome says so and *ret_refused is true. */
int request_make(struct request *q, struct job *j, struct remote *r, bool *ret_refused,
                 struct err *e);
/* Removes from the server what was sent beforehand. */
void request_done(struct request *q, struct remote *r);
