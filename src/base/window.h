#pragma once
/* An array that is added to at its end and taken from at its beginning: `n` items from `first` on,
 * with room for `cap` in all. */

#include <stddef.h>

/* Makes room for one more behind the last. Returns the array, which may have moved; `items` may be
 * NULL when `cap` is 0. */
void *window_room(void *items, size_t item_size, size_t *first, size_t n, size_t *cap);
