/* See entry.h. A record: u32 type, u32 deep, u32 mode, u64 size, u64 mtime_ns, u64 ino, and twice a
 * u32 length with that many bytes, of which only the last is NUL. */

#include "wire/entry.h"

#include <string.h>

static void put_str(struct buf *to, const char *text) {
    uint32_t n = (uint32_t)strlen(text) + 1;
    buf_add(to, &n, sizeof n);
    buf_add(to, text, n);
}

unsigned entry_depth(const char *path) {
    unsigned n = 0;
    while (*path) {
        size_t len = strcspn(path, "/");
        n += len > 0 && !(len == 1 && *path == '.');
        path += len + (path[len] == '/');
    }
    return n;
}

void entry_put(struct buf *to, const struct entry *f) {
    const uint32_t small[] = {f->type, f->deep, f->mode};
    const uint64_t large[] = {f->size, f->mtime_ns, f->ino};
    buf_add(to, small, sizeof small);
    buf_add(to, large, sizeof large);
    put_str(to, f->path);
    put_str(to, f->target);
}

static bool take(const uint8_t **at, const uint8_t *end, void *to, size_t len) {
    if ((size_t)(end - *at) < len)
        return false;
    memcpy(to, *at, len);
    *at += len;
    return true;
}

static bool take_str(const uint8_t **at, const uint8_t *end, const char **ret) {
    uint32_t n;
    if (!take(at, end, &n, sizeof n) || n == 0 || n > ENTRY_PATH_MAX + 1 ||
        n > (size_t)(end - *at) || memchr(*at, '\0', n) != *at + n - 1)
        return false;
    *ret = (const char *)*at;
    *at += n;
    return true;
}

bool entry_get(const uint8_t **at, const uint8_t *end, struct entry *ret) {
    uint32_t small[3];
    uint64_t large[3];
    const char *path, *target;
    if (!take(at, end, small, sizeof small) || !take(at, end, large, sizeof large) ||
        !take_str(at, end, &path) || !take_str(at, end, &target) || small[0] >= ENTRY_TYPES_)
        return false;
    *ret = (struct entry){.type = (enum entry_type)small[0],
                          .deep = small[1] != 0,
                          .mode = small[2] & 07777,
                          .size = large[0],
                          .mtime_ns = large[1],
                          .ino = large[2],
                          .path = path,
                          .target = target};
    return true;
}
