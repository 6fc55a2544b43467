#pragma once
/* What is known of a stored file besides its bytes, as it lies on the disk. */

#include "engine/store/disk.h"

/* What the name is after a journey through JSON, which leaves only well-formed characters; owned by
 * the caller. */
char *meta_clean_name(const char *name);
int meta_write(const struct disk *d, const struct store_entry *entry, struct err *e);
/* A meta that is not whole is EINVAL or EFBIG; one without a tenant (older servers wrote such) is
 * the empty tenant's. */
int meta_read(const struct disk *d, const char *id, struct store_entry *ret, struct err *e);
