#pragma once
/* The directory of profiles that tenants made (setting tenant_profiles_dir). The server alone
 * writes to it; nurseries show what is there to sandboxes, read-only.
 *
 *   prf_ID         a profile: SHELF_ABOUT says whose it is and what is in it, TREE_FILES is the
 * tree .new-prf_ID    one that is being made; it becomes prf_ID by a rename, or goes .old-prf_ID
 * one that was removed, of which sandboxes may still see the files
 *
 * Nothing here waits for a disk longer than for a name, but where it says so. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct crew;
struct json_t;

#define SHELF_ABOUT "profile.json"

/* Each profile there, which is the callee's reference; for the server's start. What was being made
 * is removed; what cannot be read is told in the log and left alone. */
int shelf_read(int dir, void (*fn)(void *arg, const char *id, struct json_t *about), void *arg,
               struct err *e);
/* What was removed before, and `is_used` does not know. */
void shelf_sweep(int dir, struct crew *crew, bool (*is_used)(void *arg, const char *id), void *arg);

/* The path of the directory in which one is made, for the calling process. */
void shelf_fresh_path(int dir, const char *id, struct buf *to);
int shelf_begin(int dir, const char *id, struct err *e);
/* In a thread: what it is, beside its files; and all of it reaches the disk. */
int shelf_write_about(int dir, const char *id, const char *text, size_t len, struct err *e);
/* From here on it is there. */
int shelf_commit(int dir, const char *id, struct err *e);
/* It is none any more; shelf_remove_old frees the disk. */
int shelf_retire(int dir, const char *id, struct err *e);
/* Beside the loop: what was being made, and what was removed. */
void shelf_remove_fresh(int dir, struct crew *crew, const char *id);
void shelf_remove_old(int dir, struct crew *crew, const char *id);
