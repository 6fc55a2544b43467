#pragma once
/* `cloche sandbox create`, `list` and `show`; finding and making sandboxes for the other verbs. */

#include "remote/sandbox/sandbox_cmd.h"

int sandbox_create(struct sandbox_cmd *b, struct err *e);
int sandbox_list(struct sandbox_cmd *b, struct err *e);
int sandbox_show(struct sandbox_cmd *b, struct err *e);

/* The sandbox that the first word names (an id, the beginning of one, a name): its URL's path, to
 * which more can be added. */
int sandbox_find(struct sandbox_cmd *b, struct buf *ret_path, struct err *e);
int sandbox_find_word(struct sandbox_cmd *b, const char *word, struct buf *ret_path, struct err *e);
/* Those that have all of the options' metadata: their ids, as a new array. */
int sandbox_find_all(struct sandbox_cmd *b, struct json_t **ret, struct err *e);
/* A sandbox as the options want it; *ret is the answer, owned. */
int sandbox_make(struct sandbox_cmd *b, struct json_t **ret, struct err *e);

/* Gives the limits of a sandbox that the options name to the one at `path`. */
int sandbox_change_limits(struct sandbox_cmd *b, const char *path, struct err *e);

/* A time of the API for people: "in 5 min", "3 s ago", "-". */
void sandbox_add_moment(struct buf *to, const struct json_t *at);
