#pragma once
/* The sandboxes of a nursery: see boxes.c. */

#include "nursery/nursery.h"
#include "wire/codec.h"

void boxes_make(struct nursery *n, const struct n_make *m, struct wire_in *in);
void boxes_end(struct box *b);
bool boxes_reaped(struct nursery *n, pid_t pid, int status);
/* NULL: there is none. */
struct box *boxes_find(struct nursery *n, uint64_t id);
void boxes_failed(struct nursery *n, struct box *b, const char *why);
