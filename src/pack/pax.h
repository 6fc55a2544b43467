#pragma once
/* What a pax header says of the entry behind it. Pure over bytes, which come in pieces of any size.
 * Of all that it may say four things are taken; the rest, however long, is not even kept. For pack/
 * only. */

#include "pack/tar_text.h"

#include <stdint.h>

/* What is said of an entry besides its own header, there or in GNU's long names. */
struct tar_more {
    struct tar_text path, link; /* empty: as in the header */
    bool has_size, has_mtime, is_sparse;
    int64_t size; /* negative: that cannot be */
    uint64_t mtime_ns;
};

enum pax_state { PAX_LENGTH, PAX_KEY, PAX_VALUE };

struct pax {
    struct tar_more *to; /* borrowed */
    enum pax_state state;
    uint64_t left;   /* of a record; its length while that is read */
    unsigned digits; /* of the length, so far */
    char key[64];    /* its beginning; ours are shorter */
    size_t key_len;
    struct tar_text number;
    struct tar_text *value; /* where it goes, or NULL: nobody wants it */
};

void pax_begin(struct pax *p, struct tar_more *to);
/* False when it is none. */
bool pax_read(struct pax *p, const void *data, size_t len);
/* After the last piece: whether that was a whole one. */
bool pax_end(const struct pax *p);
