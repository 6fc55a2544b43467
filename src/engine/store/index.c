/* See index.h. */

#include "engine/store/index.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

static size_t bucket_of(const struct file_index *x, const char *id) {
    uint64_t h = hash_text(id);
    return (size_t)(h ^ h >> 32) & (x->nbuckets - 1);
}

static void grow_buckets(struct file_index *x) {
    struct node **old = x->buckets;
    size_t nold = x->nbuckets;
    x->nbuckets = nold ? nold * 2 : 64;
    x->buckets = xcalloc(x->nbuckets, sizeof *x->buckets);
    for (size_t i = 0; i < nold; i++) {
        for (struct node *n = old[i], *next; n; n = next) {
            struct node **to = &x->buckets[bucket_of(x, n->entry.id)];
            next = n->chain;
            n->chain = *to;
            *to = n;
        }
    }
    free(old);
}

static void link_newest(struct file_index *x, struct node *n) {
    n->older = x->newest;
    n->newer = NULL;
    *(x->newest ? &x->newest->newer : &x->oldest) = n;
    x->newest = n;
}

struct node *index_add(struct file_index *x, const struct store_entry *entry) {
    struct node *n = xcalloc(1, sizeof *n);
    n->entry = *entry;
    if (x->nfiles >= x->nbuckets)
        grow_buckets(x);
    struct node **to = &x->buckets[bucket_of(x, entry->id)];
    n->chain = *to;
    *to = n;
    link_newest(x, n);
    x->nfiles++;
    x->bytes += entry->size + STORE_FILE_COST;
    return n;
}

struct node *index_find(const struct file_index *x, const char *id) {
    if (!x->nfiles)
        return NULL;
    struct node *n = x->buckets[bucket_of(x, id)];
    while (n && strcmp(n->entry.id, id) != 0)
        n = n->chain;
    return n;
}

static void free_node(struct node *n) {
    store_entry_done(&n->entry);
    free(n);
}

void index_drop(struct file_index *x, struct node *n) {
    LIST_REMOVE(&x->buckets[bucket_of(x, n->entry.id)], n, chain);
    *(n->older ? &n->older->newer : &x->oldest) = n->newer;
    *(n->newer ? &n->newer->older : &x->newest) = n->older;
    for (struct store_cursor *c = x->cursors; c; c = c->next)
        c->at = c->at == n ? n->older : c->at;
    x->nfiles--;
    x->bytes -= n->entry.size + STORE_FILE_COST;
    free_node(n);
}

static int by_upload(const void *a, const void *b) {
    const struct store_entry *first = &(*(struct node *const *)a)->entry;
    const struct store_entry *second = &(*(struct node *const *)b)->entry;
    if (first->uploaded != second->uploaded)
        return first->uploaded < second->uploaded ? -1 : 1;
    return strcmp(first->id, second->id);
}

void index_sort(struct file_index *x) {
    if (!x->nfiles)
        return;
    struct node **all = xcalloc(x->nfiles, sizeof *all);
    size_t n = 0;
    for (struct node *at = x->oldest; at; at = at->newer)
        all[n++] = at;
    qsort(all, n, sizeof *all, by_upload);
    x->oldest = x->newest = NULL;
    for (size_t i = 0; i < n; i++)
        link_newest(x, all[i]);
    free(all);
}

void index_done(struct file_index *x) {
    for (struct node *n = x->oldest, *next; n; n = next) {
        next = n->newer;
        free_node(n);
    }
    free(x->buckets);
}
