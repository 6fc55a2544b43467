#pragma once
/* Files without a name in a store's directory, for what is on its way to somewhere else. Their
 * bytes count as those of uploads do: all that tenants send to this disk has one bound. */

#include "engine/store/store.h"

/* Whoever has the descriptor owns the file. */
int store_spool_open(const struct store *s, int *ret_fd, struct err *e);
/* Before so many bytes are written; kind "disk_full". */
int store_spool_take(struct store *s, uint64_t bytes, struct err *e);
/* The file is closed, or will be at once. */
void store_spool_give(struct store *s, uint64_t bytes);
