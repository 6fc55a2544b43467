#pragma once
/* Singly linked lists. A list is a pointer to its first item; `link` is the member of an item that
 * points to the next one, NULL at the end. Items are never copied and never freed here, and the
 * link of an item that is taken out stays as it was: a walk may take out the item it stands on.
 *
 *     struct kernel *kernels = NULL;
 *     LIST_PUSH(&kernels, k, next);
 *     LIST_REMOVE(&kernels, k, next);
 *
 * The first argument is a place: the address of the list, or of any link in it. That is how an item
 * is taken out of the middle while walking:
 *
 *     for (struct kernel **at = &kernels; *at;) {
 *         if (is_done(*at))
 *             kernel_free(LIST_POP(at, next));
 *         else
 *             at = &(*at)->next;
 *     }
 *
 * Appending and removing walk the list: lists here are short. */

#include <stdbool.h>
#include <stddef.h>

/* Puts the item at this place, before what is there: at the front of a list. */
#define LIST_PUSH(place, item, link)                                                               \
    do {                                                                                           \
        __typeof__(*(place)) *list_at_ = (place), list_item_ = (item);                             \
        list_item_->link = *list_at_;                                                              \
        *list_at_ = list_item_;                                                                    \
    } while (0)

/* The place after the last item. */
#define LIST_END(place, link)                                                                      \
    __extension__({                                                                                \
        __typeof__(*(place)) *list_end_ = (place);                                                 \
        while (*list_end_)                                                                         \
            list_end_ = &(*list_end_)->link;                                                       \
        list_end_;                                                                                 \
    })

#define LIST_APPEND(place, item, link) LIST_PUSH(LIST_END(place, link), item, link)

/* Takes out the item at this place and returns it; NULL at the end of the list. */
#define LIST_POP(place, link)                                                                      \
    __extension__({                                                                                \
        __typeof__(*(place)) *list_at_ = (place), list_item_ = *list_at_;                          \
        if (list_item_)                                                                            \
            *list_at_ = list_item_->link;                                                          \
        list_item_;                                                                                \
    })

/* The place of an item; the end of the list if the item is not in it. */
#define LIST_FIND(place, item, link)                                                               \
    __extension__({                                                                                \
        __typeof__(*(place)) *list_find_ = (place);                                                \
        while (*list_find_ && *list_find_ != (item))                                               \
            list_find_ = &(*list_find_)->link;                                                     \
        list_find_;                                                                                \
    })

/* Takes the item out; false if it was not in the list. */
#define LIST_REMOVE(place, item, link)                                                             \
    __extension__({                                                                                \
        const bool list_was_in_ = LIST_POP(LIST_FIND(place, item, link), link) != NULL;            \
        list_was_in_;                                                                              \
    })
