/* See unpack.h. libarchive pulls its bytes, so the body is kept in a file without a name among the
 * server's state until all of it is here. Then it is read twice, a bounded piece in each turn of
 * the loop: first to see that nothing of it is refused and that it fits, so that a bad archive
 * changes nothing; then each entry is made by the sandbox's init, files as uploads are. */

#include "api/files/unpack.h"

#include "base/fd.h"
#include "pack/unpacker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLICE   (256u << 10) /* bytes that are unpacked in one turn of the loop */
#define ENTRIES 64           /* that are looked at, likewise, if their headers are short */
#define PAGE    4096u        /* a file that is not empty takes so much of a disk at least */

struct incoming {
    struct file_call fc;
    files_made_fn *done;
    int spool; /* owned: the archive */
    uint64_t spooled, most, most_files;
    struct unpacker *unpacker; /* owned */
    struct timer turn;
    bool checked;            /* the first reading is through */
    struct pack_entry entry; /* the one at hand; path and target live in the unpacker */
    char path[ENTRY_PATH_MAX + 1];
    int fd;                /* owned: the file at hand, without its name; or -1 */
    uint64_t sum, entries; /* what it takes of the disk, as if nothing of it were there yet */
    uint64_t files, bytes;
};

static void free_incoming(struct file_call *fc) {
    struct incoming *g = (struct incoming *)fc;
    loop_timer_stop(fc->call->api->o.loop, &g->turn);
    unpacker_free(g->unpacker);
    fd_close(&g->spool);
    fd_close(&g->fd);
}

static void next_turn(struct incoming *g) {
    if (!file_call_waits(&g->fc))
        loop_timer_in_ms(g->fc.call->api->o.loop, &g->turn, 0);
}

static void refuse(struct incoming *g, const struct err *e) {
    if (strcmp(e->kind, "bad_archive") != 0) {
        file_call_fail(&g->fc, e->code, e->text);
        return;
    }
    struct problem p = {.status = 422,
                        .code = "bad_archive",
                        .remediation = "send a tar.gz of files, directories and symlinks with "
                                       "relative paths; nothing was unpacked"};
    snprintf(p.text, sizeof p.text, "%s", e->text);
    call_problem(g->fc.call, &p);
}

static void too_much(struct incoming *g) {
    file_call_disk_full(&g->fc, "the archive holds more than the sandbox's disk has left");
}

/* ---- the second reading: entries are made ---- */

static void unpack_on_made(struct file_call *fc, struct file_answer *a) {
    (void)a;
    next_turn((struct incoming *)fc);
}

static bool is_there(struct file_call *fc, int errnum) {
    if (errnum != EEXIST)
        return false;
    next_turn((struct incoming *)fc);
    return true;
}

static void make_directory(struct incoming *g) {
    g->fc.on_error = is_there; /* if it is no directory, the first file in it fails */
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_MKDIR, .path = g->path, .mode = g->entry.mode},
                  unpack_on_made);
}

static void make_link(struct incoming *g) {
    g->files++;
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_LINK, .path = g->path, .to = g->entry.target},
                  unpack_on_made);
}

static void unpack_on_temp(struct file_call *fc, struct file_answer *a) {
    struct incoming *g = (struct incoming *)fc;
    g->fd = fd_take(&a->fd);
    next_turn(g);
}

static void make_file(struct incoming *g) {
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_TEMP}, unpack_on_temp);
}

/* The whole path of the entry at hand; false when it is too long. */
static bool set_path(struct incoming *g) {
    const char *top = g->fc.path, *path = g->entry.path;
    int n = snprintf(g->path, sizeof g->path, "%s%s%s", top, *top && *path ? "/" : "", path);
    return n >= 0 && (size_t)n < sizeof g->path;
}

static void make_entry(struct incoming *g) {
    static void (*const make[])(struct incoming *) = {
        [PACK_FILE] = make_file, [PACK_DIRECTORY] = make_directory, [PACK_SYMLINK] = make_link};
    g->fc.on_error = NULL;
    if (!set_path(g))
        file_call_fail(&g->fc, ENAMETOOLONG,
                       "a path in the archive is too long below this directory");
    else if (*g->path)
        make[g->entry.type](g);
    else
        next_turn(g); /* the workspace itself */
}

static void place_file(struct incoming *g) {
    if (ftruncate(g->fd, (off_t)g->entry.size) < 0) { /* a hole may be its end */
        file_call_fail(&g->fc, errno, g->path);
        return;
    }
    g->files++;
    g->bytes += g->entry.size;
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_PLACE,
                                          .path = g->path,
                                          .mode = g->entry.mode,
                                          .mtime_ns = g->entry.mtime_ns,
                                          .fd = g->fd},
                  unpack_on_made);
    fd_close(&g->fd);
}

static void write_content(struct incoming *g) {
    const void *data;
    size_t len;
    uint64_t at;
    struct err e;
    for (size_t done = 0; done < SLICE; done += len + 1) {
        int r = unpacker_data(g->unpacker, &data, &len, &at, &e);
        if (r < 0) {
            refuse(g, &e);
            return;
        }
        if (r == 0) {
            place_file(g);
            return;
        }
        if (!file_call_write(&g->fc, g->fd, &(struct file_piece){data, len, at},
                             "the sandbox's disk has no room for all of the archive"))
            return;
    }
    next_turn(g);
}

static void finish(struct incoming *g) {
    g->done(g->fc.call,
            &(struct files_made){.path = g->fc.path, .files = g->files, .bytes = g->bytes});
}

/* ---- both ---- */

static bool reopen(struct incoming *g) {
    struct err e;
    unpacker_free(g->unpacker);
    g->unpacker = NULL;
    if (unpacker_new(g->spool, &g->unpacker, &e) == 0)
        return true;
    refuse(g, &e);
    return false;
}

/* -1 when the client has its reply. */
static int next_entry(struct incoming *g) {
    struct err e;
    int r = unpacker_next(g->unpacker, &g->entry, &e);
    if (r > 0 && entry_depth(g->fc.path) + entry_depth(g->entry.path) > ENTRY_DEPTH_MAX)
        r = err_user(&e, "bad_archive",
                     "a path in the archive has more than %d components below the workspace: "
                     "%.60s...",
                     ENTRY_DEPTH_MAX, g->entry.path);
    if (r < 0)
        refuse(g, &e);
    return r;
}

/* Reads over the content as well: what is not whole is found now. True at the entry's end. */
static bool skip_content(struct incoming *g, size_t *done) {
    const void *data;
    size_t len;
    uint64_t at;
    struct err e;
    while (*done < SLICE) {
        int r = unpacker_data(g->unpacker, &data, &len, &at, &e);
        if (r < 0)
            refuse(g, &e);
        if (r <= 0)
            return r == 0;
        *done += len + 1;
        g->sum += len;
        if (g->sum > g->most) {
            too_much(g);
            return false;
        }
    }
    next_turn(g);
    return false;
}

static void count_entry(struct incoming *g) {
    g->sum = (g->sum + PAGE - 1) / PAGE * PAGE;
    g->entries += *g->entry.path != '\0'; /* else it is the directory itself */
}

/* Nothing of it is refused. */
static void end_check(struct incoming *g) {
    g->checked = true;
    if (g->sum > g->most || g->entries > g->most_files)
        too_much(g);
    else if (file_call_fits(&g->fc, g->sum) && reopen(g))
        next_turn(g);
}

static void check_on(struct incoming *g) {
    size_t done = 0;
    uint64_t most = unpacker_work(g->unpacker) + SLICE;
    for (int i = 0; i < ENTRIES && unpacker_work(g->unpacker) < most; i++) {
        if (!skip_content(g, &done))
            return;
        count_entry(g);
        int r = next_entry(g);
        if (r < 0)
            return;
        if (r == 0) {
            end_check(g);
            return;
        }
    }
    next_turn(g);
}

static void unpack_on_turn(struct timer *t) {
    struct incoming *g = t->arg;
    if (!g->checked) {
        check_on(g);
    } else if (g->fd >= 0) {
        write_content(g);
    } else {
        int r = next_entry(g);
        if (r > 0)
            make_entry(g);
        else if (r == 0)
            finish(g);
    }
}

/* ---- the upload ---- */

static void upload_piece(struct http_req *r, const char *data, size_t len) {
    struct call *c = http_user(r);
    struct incoming *g = c->state;
    struct err e;
    g->spooled += len;
    if (g->spooled > g->most)
        too_much(g);
    else if (fd_write_all(g->spool, data, len, &e) < 0)
        file_call_fail(&g->fc, e.code, "the server has no room to keep the archive");
}

static void upload_whole(struct http_req *r) {
    struct call *c = http_user(r);
    struct incoming *g = c->state;
    int more;
    if (!reopen(g) || (more = next_entry(g)) < 0)
        return;
    g->checked = more == 0;
    if (more)
        next_turn(g);
    else
        finish(g);
}

/* Where the file system knows no files without names, it has one for a moment. */
static int open_spool(int dir) {
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char name[ID_MAX];
    id_make("spool_", name, sizeof name);
    fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlinkat(dir, name, 0);
    return fd;
}

void files_unpack(struct call *c, const char *id, const char *path, files_made_fn *done) {
    http_take_stream(c->req, upload_piece, upload_whole);
    struct incoming *g = file_call_new_in(c, id, path, sizeof *g, free_incoming);
    if (!g)
        return;
    g->done = done;
    g->fd = g->spool = -1;
    g->fc.writes = true;
    g->turn = (struct timer){.fn = unpack_on_turn, .arg = g};
    const struct live *l = file_call_live(&g->fc);
    if (!l)
        return;
    g->most = files_room(live_sandbox(l));
    g->most_files = files_room_names(live_sandbox(l));
    if (http_body_length(c->req) > g->most) {
        too_much(g);
        return;
    }
    g->spool = open_spool(c->api->o.state_dir);
    if (g->spool < 0)
        file_call_fail(&g->fc, errno, "the server cannot keep the archive");
    else
        http_proceed(c->req);
}
