/* A packet from anyone. Its bytes also say in which order fields are asked for: whatever is asked,
 * nothing outside the packet is read, and what comes back keeps the promises of wire.h. */

#include "wire/fields.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QUESTIONS 16 /* the first bytes of an input: which field to ask for next */

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool inside(const struct wire_in *i, const uint8_t *p, size_t len) {
    return p >= i->data && len <= i->len && p + len <= i->data + i->len;
}

static void ask(struct wire_in *i, uint8_t question) {
    size_t len = 1, max = question >> 2;
    switch (question & 3) {
    case 0:
        wire_get_u32(i);
        break;
    case 1:
        wire_get_u64(i);
        break;
    case 2: {
        const uint8_t *p = wire_get_bytes(i, &len);
        must(p ? inside(i, p, len) : i->bad && len == 0);
        break;
    }
    default: {
        const char *s = wire_get_str(i, max);
        must(strlen(s) <= max);
        must(i->bad || inside(i, (const uint8_t *)s, strlen(s) + 1));
    }
    }
    must(i->at <= i->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct wire_in in;
    struct err e;
    if (size < QUESTIONS || size - QUESTIONS > sizeof in.data)
        return 0;
    memcpy(in.data, data + QUESTIONS, size - QUESTIONS);
    if (wire_open(&in, size - QUESTIONS, &e) < 0)
        return 0;
    must(in.type > WIRE_TYPE_NONE && in.type < WIRE_TYPES_);
    for (size_t i = 0; i < QUESTIONS; i++)
        ask(&in, data[i]);
    must(wire_take_fd(&in) == -1 && in.bad);
    must(wire_end(&in, &e) == -1);
    return 0;
}
