/* The payload of any message that codec.h reads. The first byte is the number of the message, the
 * second says how many descriptors came. Each payload that the message may have is refused, or all
 * of it is in bounds and the same when it is sent on. */

#include "wire/codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE_MOST 1024

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_strings(const struct wire_layout *l, const char *m) {
    for (size_t k = 0; k < l->nfields; k++) {
        const struct wire_field *f = &l->fields[k];
        size_t most = f->most ? f->most : WIRE_MAX;
        if (f->kind == WIRE_str || f->kind == WIRE_text)
            must(strlen(*(const char *const *)(m + f->offset)) <= most);
        if (f->kind != WIRE_strs)
            continue;
        struct wire_strs s = *(const struct wire_strs *)(m + f->offset);
        while (s.n)
            must(wire_strs_next(&s) != NULL);
    }
}

/* A peer of another build sends more or fewer of them. */
static bool has_limits(const struct wire_layout *l) {
    bool any = false;
    for (size_t k = 0; k < l->nfields; k++)
        any = any || l->fields[k].kind == WIRE_limits;
    return any;
}

static void check_payload(const struct wire_layout *l, const uint8_t *data, size_t size) {
    static struct wire_in in;
    static struct wire_out again;
    static union {
        uint64_t align;
        char bytes[SIZE_MOST];
    } m;
    struct err e;
    const uint16_t head[2] = {(uint16_t)l->type, WIRE_VERSION};
    memcpy(in.data, head, sizeof head);
    memcpy(in.data + sizeof head, data + 2, size - 2);
    must(l->size <= sizeof m && wire_open(&in, sizeof head + size - 2, &e) == 0);
    /* Numbers in the place of descriptors: nobody uses them. */
    for (in.nfds = 0; in.nfds < WIRE_MAX_FDS; in.nfds++)
        in.fds[in.nfds] = 1000 + (int)in.nfds;
    in.nfds = data[1] % (WIRE_MAX_FDS + 1);
    int r = wire_get(&in, l, &m, &e);
    check_strings(l, m.bytes);
    in.nfds = 0;
    if (r < 0)
        return;
    wire_put(&again, l, &m);
    must(!again.bad &&
         (has_limits(l) || (again.len == in.len && memcmp(again.data, in.data, in.len) == 0)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size - 2 > WIRE_MAX)
        return 0;
    for (unsigned which = 0; which < WIRE_PAYLOADS_; which++) {
        const struct wire_layout *l = wire_layout((enum wire_payload)which);
        if ((unsigned)l->type == data[0])
            check_payload(l, data, size);
    }
    return 0;
}
