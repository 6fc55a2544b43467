#pragma once
/* The directory of made profiles (config/made.h), as the one that makes them sees it.
 *
 *   NAME          a profile
 *   .NAME.lock    locked while somebody makes, replaces or removes it
 *   .NAME.new     what is being made; it becomes NAME by a rename, or goes
 *   .NAME.old-…   one that was replaced or removed, of which sandboxes may still see the files */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct options;

struct place {
    const char *dir, *name; /* borrowed */
    int fd;                 /* owned: of dir */
    int lock;               /* owned */
    struct buf fresh;       /* the path of .NAME.new */
    struct buf old;         /* the name of what was replaced or removed, or empty */
};
#define PLACE_INIT                                                                                 \
    { .fd = -1, .lock = -1, .fresh = BUF_INIT, .old = BUF_INIT }

/* Opens the directory, which is made where it is missing, and locks the name. Kind "build_running"
 * when somebody else has it. */
int place_open(const struct options *o, const char *name, struct place *ret, struct err *e);
/* Removes what was being made. */
void place_done(struct place *p);
bool place_has(const struct place *p);
/* An empty .NAME.new. */
int place_begin(struct place *p, struct err *e);
/* Removes something from it again. */
void place_forget(struct place *p, const char *name);
/* It is whole: from here on it is NAME. */
int place_commit(struct place *p, struct err *e);
/* NAME is none any more. */
int place_retire(struct place *p, struct err *e);
/* Nobody sees the files of what was replaced or removed any more. */
void place_drop(struct place *p);
/* Removes what was replaced or removed longer ago than a sandbox can live, or whatever there is
 * while nobody uses any. */
void place_sweep(const struct place *p, bool is_used, uint32_t live_s);
