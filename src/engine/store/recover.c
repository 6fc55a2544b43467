/* See recover.h. */

#include "engine/store/recover.h"

#include "base/buf.h"
#include "base/fd.h"
#include "engine/store/expire.h"
#include "engine/store/meta.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct found {
    char id[STORE_ID_LEN + 1];
    enum disk_part part;
};

struct finds {
    struct found *items; /* owned */
    size_t n, cap;
};

/* All names of ours, before anything is removed: a directory that changes is not read reliably. */
static int read_names(const struct store *s, struct finds *ret, struct err *e) {
    int fd = openat(s->disk.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        err_sys(e, "open directory");
        fd_close(&fd);
        return -1;
    }
    const struct dirent *d;
    while (errno = 0, (d = readdir(dir))) {
        struct found f;
        if (!disk_parse_name(d->d_name, f.id, &f.part))
            continue;
        if (ret->n == ret->cap) {
            ret->cap = ret->cap ? ret->cap * 2 : 256;
            ret->items = xrealloc(ret->items, ret->cap * sizeof *ret->items);
        }
        ret->items[ret->n++] = f;
    }
    int r = errno ? err_sys(e, "read directory") : 0;
    closedir(dir);
    return r;
}

/* Nothing but regular files was made by us. */
static void remove_leftover(const struct store *s, const struct found *f) {
    struct err e;
    uint64_t size;
    if (disk_size(&s->disk, f->id, f->part, &size))
        disk_unlink(&s->disk, f->id, f->part, &e);
}

static int load(struct store *s, const struct found *meta, double now, struct err *e) {
    struct store_entry entry;
    if (meta_read(&s->disk, meta->id, &entry, e) < 0) {
        int code = e->code;
        if (code != EINVAL && code != EFBIG && code != ENOENT && code != ELOOP && code != ENXIO)
            return -1;
        remove_leftover(s, meta);
        return 0;
    }
    uint64_t size;
    if (!disk_size(&s->disk, meta->id, DISK_DATA, &size) || size != entry.size ||
        expire_is_old(s, &entry, now)) {
        remove_leftover(s, meta);
        store_entry_done(&entry);
        return 0;
    }
    if (entry.uploaded > now) /* the clock was set back: do not keep it for longer than the rest */
        entry.uploaded = now;
    index_add(&s->index, &entry);
    return 0;
}

/* The metas say what is whole; of the rest everything goes that no meta vouched for. */
static int load_all(struct store *s, const struct finds *found, struct err *e) {
    double now = store_now();
    for (size_t i = 0; i < found->n; i++) {
        if (found->items[i].part == DISK_META && load(s, &found->items[i], now, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < found->n; i++) {
        const struct found *f = &found->items[i];
        if (f->part != DISK_META && (f->part != DISK_DATA || !index_find(&s->index, f->id)))
            remove_leftover(s, f);
    }
    index_sort(&s->index);
    return 0;
}

int recover_files(struct store *s, struct err *e) {
    struct finds found = {0};
    int r = read_names(s, &found, e) < 0 ? -1 : load_all(s, &found, e);
    free(found.items);
    return r;
}
