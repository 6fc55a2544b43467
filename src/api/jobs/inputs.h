#pragma once
/* The parts that the bodies of several requests have: files for a sandbox, its environment. For
 * api/ only. */

#include "api/core/call.h"
#include "api/jobs/limit_fields.h"
#include "engine/core/stage.h"

#define INPUTS_MAX 1000

extern const struct schema inputs_schema;

/* The member `files` of a request. */
struct inputs_source {
    const struct caller *who;
    const json_t *request;
    const struct body *large; /* what the request is a part of, if that was large; or NULL */
    bool live;                /* for a live sandbox */
};
/* What is in *ret is the caller's in any case. */
int inputs_read(const struct inputs_source *from, struct input_file **ret, unsigned *ret_n,
                struct problem *p);
/* Its files, as a route's `prepare`. */
void inputs_prepare(struct body *b, const json_t *request);
/* The names in the member `env`. */
int env_check(const json_t *body, struct problem *p);
/* The same of an environment that stays with a sandbox or kernel: it goes into a journal. */
int env_check_kept(const json_t *body, struct problem *p);
#define CWD_MAX 4095 /* bytes */
int cwd_check(const json_t *body, struct problem *p);
/* An object or a list of the body as text, or NULL; the caller's. */
char *field_dump(const json_t *body, const char *name);
