/* See mounts.h. */

#include "nursery/mounts.h"

int mounts_read(const struct config_profile *p, struct mounts *ret, struct err *e) {
    for (ret->n = 0; ret->n < p->mounts.n && ret->n < MOUNTS_MAX; ret->n++) {
        struct mount_words *w = &ret->words[ret->n];
        if (mount_words_parse(p->mounts.items[ret->n], w, e) < 0)
            return -1;
        ret->items[ret->n] =
            (struct root_mount){.host = w->host, .path = w->path, .writable = w->writable};
    }
    for (ret->nallowed = 0; ret->nallowed < p->allowed.n && ret->nallowed < MOUNTS_MAX;
         ret->nallowed++) {
        struct allow_words *w = &ret->allowed_words[ret->nallowed];
        if (allow_words_parse(p->allowed.items[ret->nallowed], w, e) < 0)
            return -1;
        ret->allowed[ret->nallowed] = (struct root_mount){.host = w->host, .writable = w->writable};
    }
    return 0;
}
