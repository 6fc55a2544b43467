#pragma once
/* A request that waits for a job: for all of it, or for a sandbox to be ready. When its client
 * leaves, the job is left too, unless the request has an Idempotency-Key: then the reply is kept
 * for those who ask again. For api/ only. */

#include "api/jobs/outlet.h"

struct job_wait {
    struct outlet out;
    void *job;                         /* borrowed while it runs; set by the one who started it */
    void (*leave)(void *job);          /* nobody waits for it any more */
    void (*alone)(struct job_wait *w); /* or NULL: the client has left, the job goes on */
    void (*done)(struct job_wait *w);  /* or NULL: before it is freed */
};

/* `size` bytes that begin with a job_wait, as the state of the call. NULL: the call is answered,
 * or will be by the first request with its key. */
void *job_wait_new(struct call *c, size_t size, void (*leave)(void *job));
/* The outlet has the whole reply: frees what has outlived its call. */
void job_wait_over(struct job_wait *w);
