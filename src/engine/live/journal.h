#pragma once
/* What a server must know of a live sandbox to take it over from one that died: a text and a
 * counter, in a memfd that the warden keeps. A server may die at any time: the text is always the
 * last one that was written whole.
 *
 * The text is JSON, in which a reader skips what it does not know and takes what is missing for 0,
 * "" or false: a key more needs no new version. A change of what a key means needs one
 * (JOURNAL_VERSION), and a reader for the one before. A journal of a version that is not known is
 * refused; whose it is can be read in every version. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* 1: what lasts was among the rest. 0: of servers that wrote no version; the same text as 1 */
#define JOURNAL_VERSION 2

struct journal;

int journal_new(struct journal **ret, const char *tenant, const char *id, struct err *e);
/* Takes the descriptor; what it says goes to `text`. EPROTONOSUPPORT: of a version that we do not
 * know; *ret is there even so. */
int journal_open(int *fd, struct journal **ret, struct buf *text, struct err *e);
void journal_free(struct journal *j);
/* Whose it is; "" when that is not known. Borrowed. */
const char *journal_tenant(const struct journal *j);
const char *journal_id(const struct journal *j);
int journal_fd(const struct journal *j);
/* The text is what lasts, and behind that the rest. What lasts may be long and is seldom different:
 * it has a number, never 0, and is needed only if journal_needs() says so for that number. Too long
 * a text is not written; the last one stays. */
bool journal_needs(const struct journal *j, uint64_t edition);
void journal_write(struct journal *j, uint64_t edition, const struct buf *lasting,
                   const struct buf *rest);
/* Seen by the next server however this one ends. */
uint64_t *journal_counter(struct journal *j);
uint64_t *journal_lent(struct journal *j);
