#pragma once
/* The stored files in memory: by id in a hash table, and by time of upload in a list. All files
 * live equally long, so the list is also the order in which they expire. */

#include "engine/store/store.h"

struct node {
    struct store_entry entry;
    struct node *chain; /* next in its bucket */
    struct node *older, *newer;
};

struct file_index {
    struct node **buckets; /* a power of two of them */
    size_t nbuckets;
    struct node *oldest, *newest;
    struct store_cursor *cursors; /* borrowed: lists under way */
    unsigned nfiles;
    uint64_t bytes; /* with their costs */
};

/* The newest from now on. Takes what the entry owns. */
struct node *index_add(struct file_index *x, const struct store_entry *entry);
struct node *index_find(const struct file_index *x, const char *id);
void index_drop(struct file_index *x, struct node *n);
/* By time of upload, after they were added in any order. */
void index_sort(struct file_index *x);
void index_done(struct file_index *x);
