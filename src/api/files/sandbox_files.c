/* See sandbox_files.h. Everything goes through the sandbox's init, which resolves paths beneath the
 * workspace; what we hold are descriptors of regular files that it opened. An upload goes into a
 * file without a name, as it comes, and gets its name when it is whole: until then what was there
 * stays. */

#include "api/files/sandbox_files.h"

#include "api/files/download.h"
#include "api/files/paths.h"
#include "base/fd.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- out ---- */

void files_send(struct file_call *fc, struct file_answer *a, const char *type) {
    struct stat st;
    char tag[80];
    if (fstat(a->fd, &st) < 0) {
        file_call_fail(fc, EIO, "init opened no file");
        return;
    }
    /* The change time is nobody's to set, unlike the time of modification. */
    snprintf(tag, sizeof tag, "\"%llx-%llx-%llx\"", (unsigned long long)st.st_ino,
             (unsigned long long)st.st_ctim.tv_sec * 1000000000u + (unsigned)st.st_ctim.tv_nsec,
             (unsigned long long)st.st_size);
    fc->begun = true;
    download_reply(fc->call,
                   &(struct download){.tag = tag,
                                      .name = paths_name(fc->path),
                                      .modified = st.st_mtim.tv_sec,
                                      .size = (uint64_t)st.st_size,
                                      .type = type},
                   &a->fd);
}

struct get {
    struct file_call fc;
    const char *type;
};

static void get_on_open(struct file_call *fc, struct file_answer *a) {
    AUTO_BUF name = BUF_INIT;
    paths_disposition(paths_name(fc->path), &name);
    http_add_header(fc->call->req, "Content-Disposition", name.data);
    files_send(fc, a, ((struct get *)fc)->type);
}

static bool get_on_error(struct file_call *fc, int errnum) {
    if (errnum != EISDIR && errnum != ENXIO)
        return false;
    file_call_fail(fc, ENOENT, "this is no regular file");
    return true;
}

void files_get(struct call *c, const char *id, const char *path, const char *type) {
    struct get *g = file_call_new_in(c, id, path, sizeof *g, NULL);
    if (!g)
        return;
    g->type = type;
    g->fc.on_error = get_on_error;
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_READ, .path = g->fc.path},
                  get_on_open);
}

/* ---- in ---- */

struct put {
    struct file_call fc;
    files_made_fn *done;
    int fd; /* owned: without a name yet */
    uint32_t mode;
    uint64_t size;
};

static void put_free(struct file_call *fc) {
    struct put *p = (struct put *)fc;
    file_call_close(fc, &p->fd);
}

static void put_on_place(struct file_call *fc, struct file_answer *a) {
    const struct put *p = (const struct put *)fc;
    p->done(fc->call, &(struct files_made){
                          .path = fc->path, .files = 1, .bytes = p->size, .replaced = a->replaced});
}

static void put_whole(struct http_req *r) {
    const struct call *c = http_user(r);
    struct put *p = c->state;
    file_call_ask(
        &p->fc,
        &(struct file_question){.op = FILE_PLACE, .path = p->fc.path, .mode = p->mode, .fd = p->fd},
        put_on_place);
    fd_close(&p->fd);
}

static void put_piece(struct http_req *r, const char *data, size_t len) {
    const struct call *c = http_user(r);
    struct put *p = c->state;
    const struct file_piece piece = {data, len, p->size};
    p->size += len;
    if (!file_call_write(&p->fc, p->fd, &piece, "the sandbox's disk has no room for all of it"))
        file_call_close(&p->fc, &p->fd);
}

static void put_on_temp(struct file_call *fc, struct file_answer *a) {
    struct put *p = (struct put *)fc;
    p->fd = fd_take(&a->fd);
    http_proceed(fc->call->req);
}

void files_put(struct call *c, const char *id, const char *path, const char *mode,
               files_made_fn *done) {
    http_take_stream(c->req, put_piece, put_whole);
    struct put *p = file_call_new_in(c, id, path, sizeof *p, put_free);
    if (!p)
        return;
    p->fd = -1;
    p->mode = 0644;
    p->done = done;
    p->fc.writes = true;
    p->fc.on_gone = put_free;
    if (!file_call_mode(&p->fc, mode, &p->mode))
        return;
    const struct live *l = file_call_live(&p->fc);
    if (!*p->fc.path) {
        file_call_bad_path(&p->fc, "the workspace itself is a directory");
    } else if (l && http_body_length(c->req) > files_room(live_sandbox(l))) {
        file_call_disk_full(&p->fc, "this is more than the sandbox's disk has left");
    } else if (l && file_call_fits(&p->fc, http_body_length(c->req))) {
        http_hold(c->req);
        file_call_ask(&p->fc, &(struct file_question){.op = FILE_TEMP}, put_on_temp);
    }
}

/* ---- away ---- */

void files_removed(struct file_call *fc, struct file_answer *a) {
    (void)a;
    http_reply(fc->call->req, 204, NULL, "", 0);
}

/* A directory that takes the file's place meanwhile goes only if it is empty. */
static void remove_on_stat(struct file_call *fc, struct file_answer *a) {
    if (a->entry.type == ENTRY_DIRECTORY)
        file_call_fail(fc, ENOENT, "this is a directory");
    else
        file_call_ask(fc, &(struct file_question){.op = FILE_REMOVE, .path = fc->path},
                      files_removed);
}

void files_remove(struct call *c, const char *id, const char *path) {
    struct file_call *fc = file_call_new_in(c, id, path, sizeof *fc, NULL);
    if (fc)
        file_call_ask(fc, &(struct file_question){.op = FILE_STAT, .path = fc->path},
                      remove_on_stat);
}
