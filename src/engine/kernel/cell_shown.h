#pragma once
/* What a cell prints and shows: told as it comes, and kept for its result; for kernel/ only. */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct cell;
struct said;

/* An event for whoever follows the cell. */
void cell_emit(struct cell *c, const char *type, const struct buf *json);
/* One that is to end is not held any more: what its slow reader has no room for is dropped. */
bool cell_has_room(struct cell *c);
/* It printed that to stream 1 or 2. */
void cell_print(struct cell *c, int stream, const void *data, size_t len);
/* What came in part of a character, at the end. */
void cell_flush_tails(struct cell *c);
/* A display, or its main result. Takes the text. */
void cell_show(struct cell *c, struct said *s, bool is_main);
/* clear_output(): what was printed and shown is forgotten. */
void cell_clear_shown(struct cell *c);
