#pragma once
/* A store as its parts see it; for this directory only. */

#include "base/clock.h"
#include "engine/store/disk.h"
#include "engine/store/index.h"
#include "engine/store/store.h"
#include "loop/loop.h"

struct store {
    struct store_options options;
    struct loop *loop; /* borrowed */
    struct disk disk;
    struct file_index index;
    struct timer sweeper;
    uint64_t pending; /* bytes of uploads under way, with their costs */
};

/* Files age on the real clock. */
static inline double store_now(void) {
    return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}

/* For so many bytes more, which count as pending from then on; kind "disk_full". */
int store_make_room(struct store *s, uint64_t len, struct err *e);
void store_entry_copy(const struct store_entry *from, struct store_entry *ret);
/* From the disk and the index. What cannot be unlinked is tried again at the next start. */
void store_remove(struct store *s, struct node *n);
