/* See upload.h. */

#include "engine/store/upload.h"

#include "base/buf.h"
#include "base/fd.h"
#include "engine/store/expire.h"
#include "engine/store/internal.h"
#include "engine/store/meta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STAMP_GAP 1e-6 /* seconds; more than the precision of today's times as a double */

struct store_upload {
    struct store *store; /* borrowed */
    char id[STORE_ID_LEN + 1];
    char *tenant; /* owned */
    int fd;       /* owned */
    uint64_t size;
    struct err failed; /* code 0 while all is well */
};

static void free_upload(struct store_upload *u) {
    u->store->pending -= u->size + STORE_FILE_COST;
    fd_close(&u->fd);
    free(u->tenant);
    free(u);
}

static bool has_room(const struct store *s, uint64_t len) {
    uint64_t used = s->index.bytes + s->pending, most = s->options.total_max;
    return !most || (used <= most && len <= most - used);
}

int store_make_room(struct store *s, uint64_t len, struct err *e) {
    while (!has_room(s, len)) {
        if (!expire_sweep(s)) /* what is too old need not wait for the timer */
            return err_user(e, "disk_full", "the store would hold more than %" PRIu64 " bytes",
                            s->options.total_max);
    }
    s->pending += len;
    return 0;
}

/* SECURITY: an empty file takes inodes and a block too, and a program makes a thousand at once. */
int store_begin(struct store *s, const char *tenant, struct store_upload **ret, struct err *e) {
    char id[STORE_ID_LEN + 1];
    int fd;
    if (strlen(tenant) > STORE_TENANT_MAX)
        return err_set(e, EINVAL, "the tenant's name is longer than %d bytes", STORE_TENANT_MAX);
    if (s->index.nfiles >= STORE_FILES_MAX)
        return err_user(e, "disk_full", "the store holds %u files, the most it takes",
                        s->index.nfiles);
    if (store_make_room(s, STORE_FILE_COST, e) < 0)
        return -1;
    disk_make_id(id);
    if (disk_create(&s->disk, id, DISK_NEW_DATA, &fd, e) < 0) {
        s->pending -= STORE_FILE_COST;
        return -1;
    }
    struct store_upload *u = xcalloc(1, sizeof *u);
    u->store = s;
    memcpy(u->id, id, sizeof u->id);
    u->tenant = xstrdup(tenant);
    u->fd = fd;
    *ret = u;
    return 0;
}

static int reserve(struct store_upload *u, uint64_t len, struct err *e) {
    struct store *s = u->store;
    uint64_t most = s->options.file_max;
    if (len > INT64_MAX - u->size || (most && len > most - u->size))
        return err_user(e, "file_too_large", "the file has more than %" PRIu64 " bytes",
                        most ? most : INT64_MAX);
    if (store_make_room(s, len, e) < 0)
        return -1;
    u->size += len;
    return 0;
}

int store_append(struct store_upload *u, const void *data, size_t len, struct err *e) {
    int r = u->failed.code ? -1 : reserve(u, len, &u->failed);
    if (r == 0 && (r = fd_write_all(u->fd, data, len, &u->failed)) < 0)
        disk_error(&u->failed);
    if (r < 0)
        *e = u->failed;
    return r;
}

/* Later than all others, also when the clock was set back: the list's order survives a restart. */
static double stamp(const struct store *s) {
    double now = store_now();
    double least = s->index.newest ? s->index.newest->entry.uploaded + STAMP_GAP : 0;
    return now > least ? now : least;
}

static int publish(struct store_upload *u, const char *name, struct store_entry *ret,
                   struct err *e) {
    struct store *s = u->store;
    struct store_entry entry = {.size = u->size, .uploaded = stamp(s)};
    struct err ignored;
    memcpy(entry.id, u->id, sizeof entry.id);
    entry.name = meta_clean_name(name);
    entry.tenant = xstrdup(u->tenant);
    if (meta_write(&s->disk, &entry, e) < 0 ||
        disk_rename(&s->disk, u->id, DISK_NEW_DATA, DISK_DATA, e) < 0) {
        disk_unlink(&s->disk, u->id, DISK_NEW_META, &ignored);
        disk_unlink(&s->disk, u->id, DISK_META, &ignored);
        store_entry_done(&entry);
        return -1;
    }
    const struct node *n = index_add(&s->index, &entry);
    expire_set_timer(s);
    if (ret)
        store_entry_copy(&n->entry, ret);
    return 0;
}

int store_finish(struct store_upload *u, const char *name, struct store_entry *ret, struct err *e) {
    *e = u->failed;
    if (u->failed.code || publish(u, name, ret, e) < 0) {
        store_abort(u);
        return -1;
    }
    free_upload(u);
    return 0;
}

void store_abort(struct store_upload *u) {
    struct err e;
    if (!u)
        return;
    fd_close(&u->fd); /* not the last to be closed */
    disk_unlink(&u->store->disk, u->id, DISK_NEW_DATA, &e);
    free_upload(u);
}

int store_give(struct store_upload *u, uint64_t size, int *ret_fd, struct err *e) {
    if (reserve(u, size, e) < 0)
        return -1;
    *ret_fd = fd_take(&u->fd);
    return 0;
}
