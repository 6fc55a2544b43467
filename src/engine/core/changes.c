/* See changes.h. */

#include "engine/core/changes.h"

#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT 4096

void changes_done(struct changes *c) {
    for (unsigned i = 0; i < c->n; i++)
        free(c->items[i].path);
    free(c->items);
    *c = (struct changes){0};
}

/* Relative, no empty, "." or ".." parts. */
static bool path_is_good(const char *path) {
    if (*path == '\0')
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '/' && *++p == '\0')
            return false;
    }
    return true;
}

static bool take_one(const uint8_t **at, const uint8_t *end, struct change *ret) {
    uint64_t size;
    uint32_t n;
    if ((size_t)(end - *at) < sizeof size + sizeof n)
        return false;
    memcpy(&size, *at, sizeof size);
    memcpy(&n, *at + sizeof size, sizeof n);
    *at += sizeof size + sizeof n;
    if (n == 0 || n >= PATH_LIMIT || n > (size_t)(end - *at) || memchr(*at, '\0', n))
        return false;
    ret->size = size;
    ret->path = xmalloc(n + 1);
    memcpy(ret->path, *at, n);
    ret->path[n] = '\0';
    *at += n;
    return true;
}

int changes_parse(const uint8_t *data, size_t len, unsigned most, struct changes *ret,
                  struct err *e) {
    struct changes c = {0};
    const uint8_t *at = data, *end = data + len;
    unsigned cap = 0;
    while (at < end && c.n < most) {
        if (c.n == cap) {
            cap = cap ? cap * 2 : 16;
            c.items = xrealloc(c.items, cap * sizeof *c.items);
        }
        struct change one = {0};
        bool good = take_one(&at, end, &one);
        if (good && path_is_good(one.path)) {
            c.items[c.n++] = one;
            continue;
        }
        free(one.path);
        changes_done(&c);
        return err_set(e, EPROTO, "the list of files is malformed");
    }
    *ret = c;
    return 0;
}
