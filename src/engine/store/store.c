/* See store.h. The parts of a store: its directory (disk.h, meta.h), what is in memory (index.h),
 * how it opens (recover.h), new files (upload.h, store_copy.h) and their end (expire.h).
 *
 * SECURITY: an id from outside is checked to be a uuid before it becomes part of a path, and only
 * ids that are in the index reach the disk. */

#include "engine/store/store.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "engine/store/expire.h"
#include "engine/store/internal.h"
#include "engine/store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

void store_entry_done(struct store_entry *e) {
    free(e->name);
    free(e->tenant);
    *e = (struct store_entry){0};
}

void store_entry_copy(const struct store_entry *from, struct store_entry *ret) {
    *ret = *from;
    ret->name = xstrdup(from->name);
    ret->tenant = xstrdup(from->tenant);
}

void store_remove(struct store *s, struct node *n) {
    struct err e;
    disk_unlink(&s->disk, n->entry.id, DISK_META, &e);
    disk_unlink(&s->disk, n->entry.id, DISK_DATA, &e);
    index_drop(&s->index, n);
}

/* Two stores in one directory would take each other's uploads for leftovers. A file system that
 * cannot lock a directory goes without. */
static int lock_dir(int dir, struct err *e) {
    if (flock(dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return err_set(e, EBUSY, "another server uses this directory");
    return 0;
}

int store_open(int dir_fd, const struct store_options *o, struct loop *l, struct store **ret,
               struct err *e) {
    struct store *s = xcalloc(1, sizeof *s);
    s->options = *o;
    s->loop = l;
    s->sweeper = (struct timer){.fn = expire_on_timer, .arg = s};
    s->disk.crew = o->crew;
    s->disk.dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = s->disk.dir < 0 ? err_sys(e, "open directory") : 0;
    if (r < 0 || lock_dir(s->disk.dir, e) < 0 || recover_files(s, e) < 0) {
        store_close(s);
        return err_wrap(e, "file store");
    }
    expire_set_timer(s);
    *ret = s;
    return 0;
}

void store_close(struct store *s) {
    if (!s)
        return;
    loop_timer_stop(s->loop, &s->sweeper);
    index_done(&s->index);
    fd_close(&s->disk.dir);
    free(s);
}

/* ---- files that there are ---- */

static struct node *look_up(struct store *s, const char *tenant, const char *id, struct err *e) {
    struct node *n = disk_is_id(id) ? index_find(&s->index, id) : NULL;
    if (n && expire_is_old(s, &n->entry, store_now())) {
        store_remove(s, n);
        n = NULL;
    }
    if (n && strcmp(n->entry.tenant, tenant) == 0)
        return n;
    err_user(e, "no_file", "there is no such file");
    return NULL;
}

/* Somebody may have touched the directory behind our back; then the file is gone for us. */
static int open_node(struct store *s, struct node *n, int *ret_fd, struct err *e) {
    struct stat st;
    AUTO_FD fd = -1;
    if (disk_open(&s->disk, n->entry.id, DISK_DATA, &st, &fd, e) < 0) {
        if (e->code != ENOENT && e->code != ELOOP && e->code != EINVAL && e->code != ENXIO)
            return -1;
    } else if ((uint64_t)st.st_size == n->entry.size) {
        *ret_fd = fd_take(&fd);
        return 0;
    }
    index_drop(&s->index, n);
    return err_user(e, "no_file", "there is no such file");
}

int store_find(struct store *s, const char *tenant, const char *id, struct store_entry *ret,
               int *ret_fd, struct err *e) {
    struct node *n = look_up(s, tenant, id, e);
    if (!n || (ret_fd && open_node(s, n, ret_fd, e) < 0))
        return -1;
    if (ret)
        store_entry_copy(&n->entry, ret);
    return 0;
}

int store_delete(struct store *s, const char *tenant, const char *id, struct err *e) {
    struct node *n = look_up(s, tenant, id, e);
    if (!n || disk_unlink(&s->disk, id, DISK_META, e) < 0 ||
        disk_unlink(&s->disk, id, DISK_DATA, e) < 0)
        return -1;
    index_drop(&s->index, n);
    return 0;
}

void store_list(struct store *s, struct store_cursor *ret) {
    *ret = (struct store_cursor){.store = s, .next = s->index.cursors, .at = s->index.newest};
    s->index.cursors = ret;
}

const struct store_entry *store_list_next(struct store_cursor *c, const char *tenant,
                                          unsigned *looks) {
    double now = store_now();
    while (c->at && *looks > 0) {
        const struct node *n = c->at;
        c->at = n->older;
        --*looks;
        if (!expire_is_old(c->store, &n->entry, now) && strcmp(n->entry.tenant, tenant) == 0)
            return &n->entry;
    }
    return NULL;
}

bool store_list_is_over(const struct store_cursor *c) {
    return !c->at;
}

void store_list_end(struct store_cursor *c) {
    LIST_REMOVE(&c->store->index.cursors, c, next);
}

struct store_usage store_usage(const struct store *s) {
    return (struct store_usage){.files = s->index.nfiles, .bytes = s->index.bytes};
}
