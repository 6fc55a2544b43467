/* Any bytes as an archive: no path of it leads out, and reading it ends. */

#include "base/fd.h"
#include "pack/unpacker.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST (4u << 20) /* of one input's content: the rest is more of the same */

static void check(const struct pack_entry *f) {
    size_t len = strlen(f->path);
    if (f->path[0] == '/' || (len && f->path[len - 1] == '/') || strstr(f->path, "//") ||
        len > 4095)
        abort();
    if (strcmp(f->path, "..") == 0 || strncmp(f->path, "../", 3) == 0 || strstr(f->path, "/../") ||
        (len >= 3 && strcmp(f->path + len - 3, "/..") == 0))
        abort();
    if (f->type == PACK_SYMLINK && !*f->target)
        abort();
}

static void read_all(struct unpacker *u) {
    struct pack_entry f;
    struct err e;
    size_t sum = 0;
    while (sum < MOST && unpacker_next(u, &f, &e) > 0) {
        const void *piece;
        size_t len;
        uint64_t at;
        check(&f);
        while (sum < MOST && unpacker_data(u, &piece, &len, &at, &e) > 0)
            sum += len + 1;
        sum++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct unpacker *u;
    struct err e;
    AUTO_FD fd = -1;
    if (memfd_of("archive", data, size, &fd, &e) < 0)
        return 0;
    if (unpacker_new(fd, &u, &e) < 0)
        return 0;
    read_all(u);
    unpacker_free(u);
    return 0;
}
