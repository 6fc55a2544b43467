/* See window.h. */

#include "base/window.h"

#include "base/buf.h"

#include <string.h>

void *window_room(void *items, size_t item_size, size_t *first, size_t n, size_t *cap) {
    if (*first > 0 && *first + n == *cap) {
        memmove(items, (char *)items + *first * item_size, n * item_size);
        *first = 0;
    }
    if (n * 2 >= *cap) { /* so that it moves once in as many as it has */
        *cap = *cap ? *cap * 2 : 8;
        items = xrealloc(items, *cap * item_size);
    }
    return items;
}
