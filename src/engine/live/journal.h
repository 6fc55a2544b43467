#pragma once
/* What a server must know of a live sandbox to take it over from one that died: a text and a
 * counter, in a memfd that the warden keeps. A server may die at any time: the text is always the
 * last one that was written whole. */

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct journal;

int journal_new(struct journal **ret, struct err *e);
/* Takes the descriptor; what it says goes to `text`. */
int journal_open(int *fd, struct journal **ret, struct buf *text, struct err *e);
void journal_free(struct journal *j);
int journal_fd(const struct journal *j);
/* Too long a text is not written; the last one stays. */
void journal_write(struct journal *j, const struct buf *text);
/* Seen by the next server however this one ends. */
uint64_t *journal_counter(struct journal *j);
