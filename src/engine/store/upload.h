#pragma once
/* New files of a store. Until it is finished a file is nobody's, and counts all the same. */

#include "engine/store/store.h"

struct store_upload;

/* A new file, written piece by piece. After a failed append only store_abort makes sense:
 * store_finish fails with the same error. */
int store_begin(struct store *s, const char *tenant, struct store_upload **ret, struct err *e);
int store_append(struct store_upload *u, const void *data, size_t len, struct err *e);
/* Takes u whether it succeeds or not. Ill-formed UTF-8 in the name becomes U+FFFD; an empty name is
 * "unnamed". ret may be NULL. */
int store_finish(struct store_upload *u, const char *name, struct store_entry *ret, struct err *e);
void store_abort(struct store_upload *u);

/* Makes room for `size` bytes, which somebody else writes to this descriptor before store_finish.
 */
int store_give(struct store_upload *u, uint64_t size, int *ret_fd, struct err *e);
