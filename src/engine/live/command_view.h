#pragma once
/* Commands as others see them: found, and told in JSON. */

#include "base/buf.h"
#include "base/schema.h"
#include "engine/core/denials.h"

#include <stdbool.h>
#include <stdint.h>

struct blob;
struct command;
struct command_request;
struct live;
struct rope;

struct command *command_find(struct live *l, const char *id, struct err *e);
struct command *command_next(struct live *l, const struct command *c);
const char *command_id(const struct command *c);
const struct command_request *command_asked(const struct command *c);
/* running, exited, killed or timeout. */
const char *command_status(const struct command *c);
bool command_runs(const struct command *c);
bool command_has_terminal(const struct command *c);
bool command_stays(const struct command *c);
void command_set_stays(struct command *c, bool stays);
extern const struct schema command_view_schema, command_result_schema;
void command_json(struct command *c, struct buf *to);    /* all but stdout and stderr */
void command_result(struct command *c, struct rope *to); /* with them */
/* The first for a list of many: its beginning may go to `to`, behind what `json` had. */
void command_listed(struct command *c, struct buf *json, struct rope *to);
/* How it ended; lives as long as the command. */
struct command_end {
    struct blob *text[2]; /* what is kept of stdout and stderr */
    bool truncated[2], timed_out;
    int exit_code;
    uint64_t duration_ms;
};
struct command_end command_end(struct command *c);
const struct denials *command_denied(const struct command *c);
/* What of it is kept: of stdout, or of the terminal. */
const struct buf *command_kept(const struct command *c);
