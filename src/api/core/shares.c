/* See shares.h. There are only as many shares as tenants, which an operator makes by hand: a list
 * is enough. */

#include "api/core/shares.h"

#include "base/buf.h"
#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct share *shares_find(const struct shares *s, const char *tenant) {
    struct share *h = s->first;
    while (h && strcmp(h->tenant, tenant) != 0)
        h = h->next;
    return h;
}

static struct share *shares_make(struct shares *s, const char *tenant) {
    struct share *h = xcalloc(1, sizeof *h);
    snprintf(h->tenant, sizeof h->tenant, "%s", tenant);
    h->next = s->first;
    s->first = h;
    return h;
}

void shares_add(struct shares *s, struct share_item *it, const char *tenant, size_t bytes) {
    struct share *h = shares_find(s, tenant);
    if (!h)
        h = shares_make(s, tenant);
    *it = (struct share_item){.older = h->newest, .share = h};
    *(h->newest ? &h->newest->newer : &h->oldest) = it;
    h->newest = it;
    h->n++;
    s->n++;
    shares_resize(s, it, bytes);
}

void shares_resize(struct shares *s, struct share_item *it, size_t bytes) {
    it->share->bytes += bytes - it->bytes;
    s->bytes += bytes - it->bytes;
    it->bytes = bytes;
}

static void drop(struct shares *s, struct share *h) {
    LIST_REMOVE(&s->first, h, next);
    free(h);
}

void shares_remove(struct shares *s, struct share_item *it) {
    struct share *h = it->share;
    shares_resize(s, it, 0);
    *(it->older ? &it->older->newer : &h->oldest) = it->newer;
    *(it->newer ? &it->newer->older : &h->newest) = it->older;
    s->n--;
    if (--h->n == 0)
        drop(s, h);
}

size_t shares_count(const struct shares *s, const char *tenant) {
    const struct share *h = shares_find(s, tenant);
    return h ? h->n : 0;
}

struct share_item *shares_victim(const struct shares *s,
                                 bool (*may_go)(const struct share_item *)) {
    struct share_item *best = NULL;
    for (const struct share *h = s->first; h; h = h->next) {
        if (best && h->bytes <= best->share->bytes)
            continue;
        struct share_item *it = h->oldest;
        while (it && !may_go(it))
            it = it->newer;
        if (it)
            best = it;
    }
    return best;
}
