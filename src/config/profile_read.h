#pragma once
/* What a profile is, as JSON: in the configuration file, and in the one that `cloche profile` made
 * (made.h). */

#include "base/err.h"

struct config_list;
struct config_profile;
struct json_t;

/* Puts what the definition says over what is in `p`, whose name is there; `file` is for messages.
 */
int profile_read(const char *file, const struct json_t *definition, struct config_profile *p,
                 struct err *e);

void profile_list_add(struct config_list *l, const char *item);
