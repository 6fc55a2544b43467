#pragma once
/* How a cell ends: by itself, with its kernel, or without a result; for kernel/ only. */

#include "base/buf.h"
#include "base/err.h"

struct cell;

/* It is over; all is known but the files that it made. */
void cell_finish(struct cell *c);
/* The process is dead. */
void cell_killed(struct cell *c, int status, const char *why);
/* It ends without a result. */
void cell_fail(struct cell *c, const struct err *why);
/* Its end was lost. */
void cell_lost(struct cell *c);
/* The exception that ended it. Takes `json`. */
void cell_set_error(struct cell *c, struct buf *json);
