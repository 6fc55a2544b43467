#pragma once
/* What is remembered for tenants in bounded memory, so that none of them can push out what another
 * has: each has a list of its own, oldest first, and the tenant with the most loses its oldest
 * first. Items are embedded in what they stand for, as its first member; nothing here is allocated
 * for them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct share;

struct share_item {
    struct share_item *older, *newer;
    struct share *share; /* borrowed: lives as long as it has items */
    size_t bytes;
};

struct share {
    struct share *next;
    char tenant[65];
    struct share_item *oldest, *newest;
    size_t n, bytes;
};

struct shares {
    struct share *first;
    size_t n, bytes; /* of all */
};

/* Among the tenant's, as the newest. */
void shares_add(struct shares *s, struct share_item *it, const char *tenant, size_t bytes);
void shares_remove(struct shares *s, struct share_item *it);
/* It has so many bytes now. */
void shares_resize(struct shares *s, struct share_item *it, size_t bytes);
/* How many a tenant has. */
size_t shares_count(const struct shares *s, const char *tenant);
/* The oldest that `may_go` lets go, of the tenant with the most bytes that has such a one. */
struct share_item *shares_victim(const struct shares *s, bool (*may_go)(const struct share_item *));
