#pragma once
/* Kernels as others see them: found, named, watched, told in JSON. */

#include "base/buf.h"
#include "base/err.h"
#include "base/schema.h"

#include <stdbool.h>
#include <stdint.h>

struct kernel;
struct live;

/* By its id; NULL is the default one. NULL with kind "no_such_kernel". */
struct kernel *kernel_find(struct live *l, const char *id, struct err *e);
struct kernel *kernel_next(struct live *l, const struct kernel *k);
const char *kernel_id(const struct kernel *k);
struct live *kernel_live(struct kernel *k);
bool kernel_is_default(const struct kernel *k);
const char *kernel_state(const struct kernel *k); /* starting, idle, busy */
uint64_t kernel_count(const struct kernel *k);    /* the number of the last cell */
/* What a dialect knows of it: kept with it, over a restart of the server too; NULL: nothing. */
const char *kernel_label(const struct kernel *k);
void kernel_set_label(struct kernel *k, const char *label);
/* Its process died and another one comes; that is there; none can be had; it was deleted, or its
 * sandbox has ended: the last that is told. Who leaves before takes itself out. */
enum kernel_news { KERNEL_DIED, KERNEL_BACK, KERNEL_DEAD, KERNEL_GONE };
struct kernel_watcher {
    struct kernel_watcher *next;
    struct kernel *kernel; /* borrowed; NULL when it is gone, or was left */
    void (*on_news)(struct kernel_watcher *w, enum kernel_news news);
    void *arg;
};
void kernel_watch(struct kernel *k, struct kernel_watcher *w);
void kernel_unwatch(struct kernel_watcher *w);
/* The one that is called like that, or NULL. */
struct kernel_watcher *kernel_watched(const struct kernel *k,
                                      void (*on_news)(struct kernel_watcher *w,
                                                      enum kernel_news news));
extern const struct schema kernel_view_schema;
void kernel_json(const struct kernel *k, struct buf *to);
