/* See tar_header.h. A number is octal with spaces or a NUL around it; where that is too short, GNU
 * has it in base 256, as a big-endian number whose first bit is set. Old tars summed up their bytes
 * as signed ones. */

#include "pack/tar_header.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct raw {
    uint8_t name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    uint8_t magic[8], uname[32], gname[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct raw) == TAR_BLOCK, "a header is a block");

/* Of two's complement; what is too large is as large as can be. */
static int64_t read_base256(const uint8_t *p, size_t n) {
    int64_t v = p[0] & 0x40 ? -1 : 0;
    v = v * 64 + (p[0] & 0x3f);
    for (size_t i = 1; i < n; i++) {
        if (v > INT64_MAX >> 8 || v < INT64_MIN >> 8)
            return v > 0 ? INT64_MAX : INT64_MIN;
        v = v * 256 + p[i];
    }
    return v;
}

static int64_t read_octal(const uint8_t *p, size_t n) {
    int64_t v = 0;
    size_t i = 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t'))
        i++;
    bool is_negative = i < n && p[i] == '-';
    for (i += is_negative; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (p[i] - '0'); /* no field has 21 digits */
    return is_negative ? -v : v;
}

static int64_t tar_number(const uint8_t *p, size_t n) {
    return p[0] & 0x80 ? read_base256(p, n) : read_octal(p, n);
}

bool tar_is_null(const uint8_t block[TAR_BLOCK]) {
    static const uint8_t null[TAR_BLOCK];
    return memcmp(block, null, TAR_BLOCK) == 0;
}

/* The sum is made with spaces in its own place. */
static bool sum_is_right(const uint8_t block[TAR_BLOCK]) {
    const struct raw *r = (const struct raw *)block;
    int64_t sum = 0, signed_sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool is_own = i >= offsetof(struct raw, checksum) && i < offsetof(struct raw, type);
        uint8_t byte = is_own ? ' ' : block[i];
        sum += byte;
        signed_sum += (int8_t)byte;
    }
    int64_t said = read_octal(r->checksum, sizeof r->checksum);
    return said == sum || said == signed_sum;
}

/* GNU has other things in the place of the prefix. */
static bool has_prefix(const struct raw *r) {
    return memcmp(r->magic, "ustar", 5) == 0 && memcmp(r->magic, "ustar  ", 8) != 0 && *r->prefix;
}

/* A field that is full has no NUL. */
static void read_path(const struct raw *r, char *to, size_t cap) {
    size_t n = has_prefix(r) ? strnlen((const char *)r->prefix, sizeof r->prefix) : 0;
    bool has_slash = n > 0 && r->prefix[n - 1] == '/';
    snprintf(to, cap, "%.*s%s%.*s", (int)n, (const char *)r->prefix, n && !has_slash ? "/" : "",
             (int)sizeof r->name, (const char *)r->name);
}

bool tar_header_read(const uint8_t block[TAR_BLOCK], struct tar_header *ret) {
    const struct raw *r = (const struct raw *)block;
    if (!sum_is_right(block))
        return false;
    int64_t mtime = tar_number(r->mtime, sizeof r->mtime);
    ret->type = r->type ? (char)r->type : '0';
    ret->mode = (uint32_t)tar_number(r->mode, sizeof r->mode);
    ret->size = tar_number(r->size, sizeof r->size);
    ret->mtime_ns = mtime > 0 && mtime < (int64_t)TAR_LATEST ? (uint64_t)mtime * 1000000000u : 0;
    read_path(r, ret->path, sizeof ret->path);
    snprintf(ret->link, sizeof ret->link, "%.*s", (int)sizeof r->link, (const char *)r->link);
    return true;
}
