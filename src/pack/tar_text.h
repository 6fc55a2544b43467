#pragma once
/* A string that a tar says of an entry, bounded. For pack/ only. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define TAR_TEXT_MAX 8192 /* twice as long as a path may be: some write "./" before each part */

struct tar_text {
    char data[TAR_TEXT_MAX + 1];
    size_t len;
    bool is_long; /* it was longer: what is here is its beginning */
};

static inline void tar_text_clear(struct tar_text *t) {
    t->len = 0;
    t->is_long = false;
    t->data[0] = '\0';
}

static inline void tar_text_add(struct tar_text *t, const void *data, size_t len) {
    size_t room = TAR_TEXT_MAX - t->len;
    t->is_long = t->is_long || len > room;
    if (len > room)
        len = room;
    memcpy(t->data + t->len, data, len);
    t->len += len;
    t->data[t->len] = '\0';
}
