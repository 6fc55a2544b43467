/* See store_copy.h. */

#include "engine/store/store_copy.h"

#include "base/buf.h"
#include "base/fd.h"
#include "engine/store/disk.h"
#include "loop/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct store_copy {
    struct store_upload *upload; /* owned */
    struct copy *copy;
    char *name; /* owned */
    void (*done)(void *arg, const struct store_entry *entry, const struct err *why);
    void *arg;
};

/* An upload that has room for it, and where the bytes go. */
static int open_copy(struct store *s, const struct store_copy_request *q, struct store_upload **ret,
                     int *ret_fd, struct err *e) {
    struct stat st;
    struct store_upload *u;
    if (fstat(*q->fd, &st) < 0)
        return err_sys(e, "look at the file to copy");
    if (!S_ISREG(st.st_mode)) /* reading anything else could block */
        return err_set(e, EINVAL, "copy: not a regular file");
    if (store_begin(s, q->tenant, &u, e) < 0)
        return -1;
    if (store_give(u, q->size, ret_fd, e) < 0) {
        store_abort(u);
        return err_wrap(e, "copy");
    }
    *ret = u;
    return 0;
}

int store_copy(struct store *s, const struct store_copy_request *q, struct store_entry *ret,
               struct err *e) {
    struct store_upload *u;
    AUTO_FD to = -1;
    AUTO_FD from = *q->fd;
    int r = open_copy(s, q, &u, &to, e);
    *q->fd = -1;
    if (r < 0)
        return -1;
    if (copy_now(from, to, q->size, e) < 0) {
        store_abort(u);
        disk_error(e);
        return err_wrap(e, "copy");
    }
    return store_finish(u, q->name, ret, e);
}

static void free_store_copy(struct store_copy *c) {
    free(c->name);
    free(c);
}

static void on_copied(void *arg, const struct err *why) {
    struct store_copy *c = arg;
    struct store_entry entry = {0};
    struct err e = {0};
    int r = -1;
    if (why) {
        e = *why;
        disk_error(&e);
        store_abort(c->upload);
    } else {
        r = store_finish(c->upload, c->name, &entry, &e);
    }
    c->done(c->arg, r < 0 ? NULL : &entry, r < 0 ? &e : NULL);
    store_entry_done(&entry);
    free_store_copy(c);
}

int store_copy_begin(struct store *s, struct crew *crew, const struct store_copy_request *q,
                     struct store_copy **ret, struct err *e) {
    struct store_upload *u;
    int to;
    if (open_copy(s, q, &u, &to, e) < 0)
        return -1;
    struct store_copy *c = xmalloc(sizeof *c);
    *c = (struct store_copy){.upload = u, .name = xstrdup(q->name), .done = q->done, .arg = q->arg};
    c->copy = copy_begin(crew, q->fd, &to, q->size, on_copied, c);
    *ret = c;
    return 0;
}

void store_copy_leave(struct store_copy *c) {
    if (!c)
        return;
    copy_leave(c->copy);
    store_abort(c->upload);
    free_store_copy(c);
}
