#pragma once
/* The store's directory: the names of a file's parts, and what is done to them.
 *
 * A file is DIR/ID, its bytes, and DIR/ID.meta.json, what is known about it (meta.h). Both are made
 * under names that start with a dot and renamed when whole, the meta first: so a DIR/ID without a
 * whole meta beside it, or a meta without its DIR/ID, is what a crash left behind. Nothing is
 * synced: a power cut may leave short files under whole names, and therefore the size in the meta
 * must agree with the file's.
 *
 * SECURITY: only ids that are uuids become part of a path, and symlinks are never followed. */

#include "engine/store/store.h"

#include <sys/stat.h>

struct crew;

struct disk {
    int dir;           /* owned: our own, because it carries the lock */
    struct crew *crew; /* borrowed, or NULL: where large files are freed */
};

enum disk_part { DISK_DATA, DISK_META, DISK_NEW_DATA, DISK_NEW_META, DISK_PARTS_ };

bool disk_is_id(const char *text);
void disk_make_id(char out[STORE_ID_LEN + 1]);
/* Which part of which file a name in the directory is; false for a name that is not ours. */
bool disk_parse_name(const char *name, char ret_id[STORE_ID_LEN + 1], enum disk_part *ret_part);

/* What failed there, in the words of store.h; -1. */
int disk_error(struct err *e);

int disk_open(const struct disk *d, const char *id, enum disk_part part, struct stat *ret_stat,
              int *ret_fd, struct err *e);
int disk_create(const struct disk *d, const char *id, enum disk_part part, int *ret_fd,
                struct err *e);
/* To be read and written, and gone when it is closed. */
int disk_create_nameless(const struct disk *d, int *ret_fd, struct err *e);
int disk_rename(const struct disk *d, const char *id, enum disk_part from, enum disk_part to,
                struct err *e);
/* 0 also when it was not there. */
int disk_unlink(const struct disk *d, const char *id, enum disk_part part, struct err *e);
/* False when it is no regular file, or not there. */
bool disk_size(const struct disk *d, const char *id, enum disk_part part, uint64_t *ret);
