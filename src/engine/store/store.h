#pragma once
/* The store of files: what clients upload and what programs leave behind, kept in a directory under
 * ids nobody can guess, each for its tenant only and for a time. One store per directory (a second
 * one is refused); single threaded; nothing here waits for anything but the disk.
 *
 * Errors for users: "file_too_large" (beyond file_max), "disk_full" (the disk, its quota, or
 * total_max), "no_file". */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct node;
struct store;

#define STORE_ID_LEN     36
#define STORE_NAME_MAX   1024 /* bytes; longer names are cut between characters */
#define STORE_TENANT_MAX 255
#define STORE_FILES_MAX  1000000u /* each takes two inodes and some 300 bytes of memory */
#define STORE_FILE_COST  8192u /* counted for each beside its bytes: its last block, its record */

struct store_options {
    uint64_t ttl_s;     /* seconds a file is kept; 0: for ever */
    uint64_t file_max;  /* bytes of one file; 0: no bound */
    uint64_t total_max; /* bytes and costs of all files, half-done ones included; 0: no bound */
    struct crew *crew;  /* borrowed, or NULL: where large files are freed */
};

struct store_entry {
    char id[STORE_ID_LEN + 1]; /* a uuid, lower case */
    char *name;                /* owned: well-formed UTF-8, never empty; any characters but NUL */
    char *tenant;              /* owned */
    uint64_t size;
    double uploaded; /* unix seconds; no two files have the same */
};
void store_entry_done(struct store_entry *e);

/* Reads what is in the directory (a stored file survives a restart), removes what is half-done or
 * too old, and from then on removes each file when its time is over. Whatever else lies there is
 * left alone. dir_fd is borrowed for this call only. */
int store_open(int dir_fd, const struct store_options *o, struct loop *l, struct store **ret,
               struct err *e);
/* The files stay. Every upload must have been finished or aborted. */
void store_close(struct store *s);

/* A file and a read-only descriptor of it; either may be NULL. "no_file" when the id is unknown or
 * malformed, or the file is another tenant's or too old. */
int store_find(struct store *s, const char *tenant, const char *id, struct store_entry *ret,
               int *ret_fd, struct err *e);
int store_delete(struct store *s, const char *tenant, const char *id, struct err *e);
/* The files that there are now, newest first; those that go meanwhile are left out. It may take any
 * time, costs no copy, and ends with store_list_end. */
struct store_cursor {
    struct store *store;       /* borrowed */
    struct store_cursor *next; /* of the store's */
    struct node *at;           /* borrowed */
};
void store_list(struct store *s, struct store_cursor *ret);
/* The tenant's next one, borrowed until the store changes. NULL at the end, or when *looks files
 * were looked at: they count down. */
const struct store_entry *store_list_next(struct store_cursor *c, const char *tenant,
                                          unsigned *looks);
bool store_list_is_over(const struct store_cursor *c);
void store_list_end(struct store_cursor *c);

/* Files of all tenants, without those being uploaded. */
struct store_usage {
    unsigned files;
    uint64_t bytes; /* as they count against total_max */
};
struct store_usage store_usage(const struct store *s);
