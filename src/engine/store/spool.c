/* See spool.h. */

#include "engine/store/spool.h"

#include "engine/store/internal.h"

int store_spool_open(const struct store *s, int *ret_fd, struct err *e) {
    return disk_create_nameless(&s->disk, ret_fd, e);
}

int store_spool_take(struct store *s, uint64_t bytes, struct err *e) {
    return store_make_room(s, bytes, e);
}

void store_spool_give(struct store *s, uint64_t bytes) {
    s->pending -= bytes;
}
