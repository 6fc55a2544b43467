#pragma once
/* Listing trees that hostile processes change at the same time. */

#include "base/buf.h"
#include "wire/entry.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct entry list_entry(const struct stat *st, const char *path, const char *target);
/* The target of the symlink `name` in `dir` (or of the O_PATH descriptor, with ""), cut. */
void list_target(int dir, const char *name, char ret[ENTRY_PATH_MAX + 1]);

/* Entries below a directory, each directory before what is in it and otherwise by name, so that the
 * next page is what comes after the last one's last path, whatever has changed between. */
struct listing {
    struct buf out; /* records of wire/entry.h; the caller's to free */
    bool recursive, cut;
    uint32_t most, count;
};
/* Takes dir, whose path is `path`. 0, or -1 and errno. */
int list_page(struct listing *l, int dir, const char *path, const char *after);

/* Regular files of the workspace that changed, in no order; records for engine/core/changes.c. */
struct changed {
    struct buf out; /* u64 size, u32 length of the path, the path; the caller's to free */
    char path[4096];
    uint32_t most, count, depth;
    dev_t dev;         /* of the workspace */
    uint64_t since_ns; /* by their change time, which nobody can set */
    bool cut;          /* not all is in the list */
    bool full; /* and no more goes in; a tree that is too deep does not hide its neighbours */
};
void list_changes(struct changed *w, int dir);
