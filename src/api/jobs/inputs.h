#pragma once
/* The parts that the bodies of several requests have: files for a sandbox, its environment. For
 * api/ only. */

#include "api/core/call.h"
#include "api/jobs/limit_fields.h"
#include "engine/core/stage.h"

#define INPUTS_MAX 1000

extern const struct schema inputs_schema;

/* -1, for `return problem_plain(…)`. */
int problem_plain(struct problem *p, int status, const char *code, const char *text);
/* The member `files`; what is in *ret is the caller's in any case. */
int inputs_read(struct call *c, const json_t *body, bool live, struct run_input **ret,
                unsigned *ret_n, struct problem *p);
bool inputs_is_base64(const json_t *file); /* the encoding of its content */
/* The names in the member `env`. */
int env_check(const json_t *body, struct problem *p);
/* The same of an environment that stays with a sandbox or kernel: it goes into a journal. */
#define ENV_KEPT_MAX 32768 /* bytes */
int env_check_kept(const json_t *body, struct problem *p);
#define CWD_MAX 4095 /* bytes */
int cwd_check(const json_t *body, struct problem *p);
/* An object or a list of the body as text, or NULL; the caller's. */
char *field_dump(const json_t *body, const char *name);
