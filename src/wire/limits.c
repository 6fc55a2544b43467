/* See limits.h. */

#include "wire/limits.h"

#include "base/buf.h"
#include "wire/fields.h"

#include <inttypes.h>
#include <stddef.h>

#define TYPE_NUM(min_, max_)       .type = LIMIT_NUM, .min = min_, .max = max_
#define TYPE_MILLI(min_, max_)     .type = LIMIT_MILLI, .min = min_, .max = max_
#define TYPE_CORES(min_, max_)     .type = LIMIT_CORES, .min = min_, .max = max_
#define TYPE_LONG(min_, max_)      .type = LIMIT_LONG, .min = min_, .max = max_
#define NAMED(name_, flag_, unit_) .name = name_, .flag = "--" flag_, .unit = unit_
#define HELP(takes_, help_)        .takes = takes_, .help = help_
#define INFO(member_, type_, scope_, named, helped, ...)                                           \
    {.member = #member_,                                                                           \
     .offset = offsetof(struct limits, member_),                                                   \
     .scope = LIMIT_OF_##scope_,                                                                   \
     TYPE_##type_,                                                                                 \
     named,                                                                                        \
     helped},

const struct limit_info limits_info[] = {LIMITS(INFO)};

uint64_t limits_most(size_t i) {
    return limits_info[i].type == LIMIT_LONG ? UINT64_MAX : UINT32_MAX;
}

uint64_t limits_value(const struct limits *l, size_t i) {
    const void *p = (const char *)l + limits_info[i].offset;
    return limits_info[i].type == LIMIT_LONG ? *(const uint64_t *)p : *(const uint32_t *)p;
}

bool limits_any(const struct limits *l, unsigned scopes) {
    bool any = false;
    for (size_t i = 0; i < LIMITS_; i++)
        any = any || (limits_info[i].scope & scopes && limits_value(l, i));
    return any;
}

bool limits_same(const struct limits *a, const struct limits *b, unsigned scopes) {
    for (size_t i = 0; i < LIMITS_; i++) {
        if (limits_info[i].scope & scopes && limits_value(a, i) != limits_value(b, i))
            return false;
    }
    return true;
}

void limits_set(struct limits *l, size_t i, uint64_t v) {
    void *p = (char *)l + limits_info[i].offset;
    if (limits_info[i].type == LIMIT_LONG)
        *(uint64_t *)p = v;
    else
        *(uint32_t *)p = (uint32_t)(v < UINT32_MAX ? v : UINT32_MAX);
}

struct limits limits_over(const struct limits *usual, const struct limits *own) {
    struct limits l = *usual;
    for (size_t i = 0; i < LIMITS_; i++) {
        if (limits_value(own, i))
            limits_set(&l, i, limits_value(own, i));
    }
    return l;
}

void limits_add_bytes(struct buf *to, uint64_t n) {
    if (n && n % 1000000 == 0)
        buf_addf(to, "%" PRIu64 " MB", n / 1000000);
    else if (n && n % (1u << 20) == 0)
        buf_addf(to, "%" PRIu64 " MiB", n >> 20);
    else
        buf_addf(to, "%" PRIu64 " bytes", n);
}

void limits_add_text(struct buf *to, size_t i, uint64_t v) {
    switch (limits_info[i].type) {
    case LIMIT_MILLI:
        buf_addf(to, "%.10g", (double)v / 1e3);
        break;
    case LIMIT_CORES:
        buf_addf(to, "%.10g", (double)v / 1e2);
        break;
    case LIMIT_NUM:
        buf_addf(to, "%" PRIu64, v);
        break;
    case LIMIT_LONG: /* bytes, all of them */
        limits_add_bytes(to, v);
        return;
    }
    buf_addf(to, " %s", limits_info[i].unit);
}

void limits_put(struct wire_out *o, const struct limits *l) {
    wire_put_u32(o, LIMITS_);
    for (size_t i = 0; i < LIMITS_; i++)
        wire_put_u64(o, limits_value(l, i));
}

struct limits limits_get(struct wire_in *in) {
    struct limits l = {0};
    uint32_t n = wire_get_u32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        uint64_t v = wire_get_u64(in);
        if (i < LIMITS_ && v <= limits_most(i))
            limits_set(&l, i, v);
        else
            in->bad |= v != 0;
    }
    return l;
}
