/* See unpack.h. An archive is read twice, so the body is kept in a file without a name
 * beside stored files until all of it is here. Then it is read beside the loop (file_work.h) and in
 * slices: first to see that nothing of it is refused and that it fits, so that a bad archive
 * changes nothing; then each entry is made by the sandbox's init, files as uploads are, a block
 * after each slice. */

#include "api/files/unpack.h"

#include "api/files/file_work.h"
#include "base/fd.h"
#include "engine/store/spool.h"
#include "pack/unpacker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u /* a file that is not empty takes so much of a disk at least */

/* What a slice is for. */
enum reading {
    READ_CHECK, /* some of it, to see whether it is good */
    READ_ENTRY, /* the next entry */
    READ_BLOCK, /* of the entry's content */
};

/* What the slices touch. */
struct unpacking {
    struct file_work work;
    int spool;                 /* owned: the archive */
    struct unpacker *unpacker; /* owned; NULL before the first slice of a reading */
    uint64_t most, most_files; /* that there is room for */
    unsigned depth;            /* of the directory that it is unpacked into */
    bool is_inside;            /* the check is within an entry */
    uint64_t sum, entries;     /* what it takes of the disk, as if nothing of it were there yet */
    struct pack_entry entry;   /* the one at hand; path and target live in the unpacker */
    enum reading reading;
    /* what the slice found */
    bool is_end;             /* of the check, of the archive, or of the entry */
    struct err why;          /* code 0: all is well */
    struct file_piece piece; /* lives in the unpacker */
};

struct incoming {
    struct file_call fc;
    files_made_fn *done;
    struct unpacking *unpacking; /* owned, unless a slice is at work */
    char path[ENTRY_PATH_MAX + 1];
    int fd; /* owned: the file at hand, without its name; or -1 */
    uint64_t files, bytes;
};

/* ---- beside the loop ---- */

/* 1, 0 at the end, or -1. */
static int next_entry(struct unpacking *u) {
    int r = unpacker_next(u->unpacker, &u->entry, &u->why);
    if (r > 0 && u->depth + entry_depth(u->entry.path) > ENTRY_DEPTH_MAX)
        r = err_user(&u->why, "bad_archive",
                     "a path in the archive has more than %d components below the workspace: "
                     "%.60s...",
                     ENTRY_DEPTH_MAX, u->entry.path);
    return r;
}

static int next_block(struct unpacking *u) {
    return unpacker_data(u->unpacker, &u->piece.data, &u->piece.len, &u->piece.at, &u->why);
}

/* Reads over the content as well: what is not whole is found now. */
static void skip_block(struct unpacking *u) {
    int r = next_block(u);
    if (r > 0)
        u->sum += u->piece.len;
    if (r != 0)
        return;
    u->is_inside = false;
    u->sum = (u->sum + PAGE - 1) / PAGE * PAGE;
    u->entries += *u->entry.path != '\0'; /* else it is the directory itself */
}

static void check_some(struct unpacking *u) {
    while (file_work_has_time(&u->work)) {
        if (u->is_inside) {
            skip_block(u);
        } else {
            u->is_end = next_entry(u) == 0;
            u->is_inside = true;
        }
        if (u->is_end || u->why.code || u->sum > u->most)
            return;
    }
}

static void unpack_read(struct unpacking *u) {
    if (u->reading == READ_CHECK)
        check_some(u);
    else
        u->is_end = (u->reading == READ_ENTRY ? next_entry(u) : next_block(u)) == 0;
}

static void unpacking_slice(struct file_work *w) {
    struct unpacking *u = (struct unpacking *)w;
    u->is_end = false;
    if (u->unpacker || unpacker_new(u->spool, &u->unpacker, &u->why) == 0)
        unpack_read(u);
    if (u->reading == READ_CHECK && u->is_end) {
        unpacker_free(u->unpacker);
        u->unpacker = NULL;
    }
}

static void unpacking_empty(struct file_work *w) {
    struct unpacking *u = (struct unpacking *)w;
    unpacker_free(u->unpacker);
    crew_close(w->crew, &u->spool);
}

/* ---- in the loop ---- */

static void free_incoming(struct file_call *fc) {
    struct incoming *g = (struct incoming *)fc;
    if (!g->unpacking)
        return;
    crew_close(g->unpacking->work.crew, &g->fd);
    file_work_leave(&g->unpacking->work);
}

static void read_next(struct incoming *g, enum reading what) {
    g->unpacking->reading = what;
    file_work_go(&g->unpacking->work);
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
    read_next((struct incoming *)fc, READ_ENTRY);
}

static bool is_there(struct file_call *fc, int errnum) {
    if (errnum != EEXIST)
        return false;
    read_next((struct incoming *)fc, READ_ENTRY);
    return true;
}

static void make_directory(struct incoming *g) {
    const struct pack_entry *entry = &g->unpacking->entry;
    g->fc.on_error = is_there; /* if it is no directory, the first file in it fails */
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_MKDIR, .path = g->path, .mode = entry->mode},
                  unpack_on_made);
}

static void make_link(struct incoming *g) {
    const struct pack_entry *entry = &g->unpacking->entry;
    g->files++;
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_LINK, .path = g->path, .to = entry->target},
                  unpack_on_made);
}

static void place_file(struct incoming *g) {
    const struct pack_entry *entry = &g->unpacking->entry;
    if (ftruncate(g->fd, (off_t)entry->size) < 0) { /* a hole may be its end */
        file_call_fail(&g->fc, errno, g->path);
        return;
    }
    g->files++;
    g->bytes += entry->size;
    file_call_ask(&g->fc,
                  &(struct file_question){.op = FILE_PLACE,
                                          .path = g->path,
                                          .mode = entry->mode,
                                          .mtime_ns = entry->mtime_ns,
                                          .fd = g->fd},
                  unpack_on_made);
    crew_close(g->unpacking->work.crew, &g->fd);
}

static void write_block(struct incoming *g) {
    const struct unpacking *u = g->unpacking;
    if (u->is_end)
        place_file(g);
    else if (!file_call_write(&g->fc, g->fd, &u->piece,
                              "the sandbox's disk has no room for all of the archive"))
        return;
    else if (u->piece.at + u->piece.len == u->entry.size)
        place_file(g);
    else
        read_next(g, READ_BLOCK);
}

static void unpack_on_temp(struct file_call *fc, struct file_answer *a) {
    struct incoming *g = (struct incoming *)fc;
    g->fd = fd_take(&a->fd);
    if (g->unpacking->entry.size == 0)
        place_file(g);
    else
        read_next(g, READ_BLOCK);
}

static void make_file(struct incoming *g) {
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_TEMP}, unpack_on_temp);
}

/* The whole path of the entry at hand; false when it is too long. */
static bool set_path(struct incoming *g) {
    const char *top = g->fc.path, *path = g->unpacking->entry.path;
    int n = snprintf(g->path, sizeof g->path, "%s%s%s", top, *top && *path ? "/" : "", path);
    return n >= 0 && (size_t)n < sizeof g->path;
}

static void make_entry(struct incoming *g) {
    static void (*const make[])(struct incoming *) = {
        [PACK_FILE] = make_file, [PACK_DIRECTORY] = make_directory, [PACK_SYMLINK] = make_link};
    g->fc.on_error = NULL;
    if (g->unpacking->is_end)
        g->done(g->fc.call,
                &(struct files_made){.path = g->fc.path, .files = g->files, .bytes = g->bytes});
    else if (!set_path(g))
        file_call_fail(&g->fc, ENAMETOOLONG,
                       "a path in the archive is too long below this directory");
    else if (*g->path)
        make[g->unpacking->entry.type](g);
    else
        read_next(g, READ_ENTRY); /* the workspace itself */
}

/* ---- both ---- */

static void go_on_checking(struct incoming *g) {
    const struct unpacking *u = g->unpacking;
    if (u->sum > u->most || (u->is_end && u->entries > u->most_files))
        too_much(g);
    else if (!u->is_end)
        read_next(g, READ_CHECK);
    else if (file_call_fits(&g->fc, u->sum))
        read_next(g, READ_ENTRY);
}

static void unpack_on_slice(struct file_call *fc) {
    static void (*const go_on[])(struct incoming *) = {
        [READ_CHECK] = go_on_checking, [READ_ENTRY] = make_entry, [READ_BLOCK] = write_block};
    struct incoming *g = (struct incoming *)fc;
    if (g->unpacking->why.code)
        refuse(g, &g->unpacking->why);
    else
        go_on[g->unpacking->reading](g);
}

/* ---- the upload ---- */

/* The disk of the server is full, or what all tenants together may have of it is taken. */
static void cannot_keep(struct incoming *g, const struct err *e) {
    struct problem p = problem_of(e);
    if (strcmp(e->kind, "disk_full") == 0 || e->code == ENOSPC || e->code == EDQUOT)
        p = (struct problem){.status = 507,
                             .code = "disk_full",
                             .message = "the server has no room to keep the archive",
                             .remediation = "send it later; the operator makes room (--files-mb)",
                             .retryable = true};
    call_problem(g->fc.call, &p);
}

static void upload_piece(struct http_req *r, const char *data, size_t len) {
    const struct call *c = http_user(r);
    struct incoming *g = c->state;
    struct unpacking *u = g->unpacking;
    struct err e;
    if (file_work_spooled(&u->work) + len > u->most)
        file_call_disk_full(&g->fc, "the archives that are on their way to this sandbox hold more "
                                    "than its disk has left");
    else if (file_work_spool(&u->work, len, &e) < 0 || fd_write_all(u->spool, data, len, &e) < 0)
        cannot_keep(g, &e);
}

static void upload_whole(struct http_req *r) {
    const struct call *c = http_user(r);
    read_next(c->state, READ_CHECK);
}

void files_unpack(struct call *c, const char *id, const char *path, files_made_fn *done) {
    http_take_stream(c->req, upload_piece, upload_whole);
    struct incoming *g = file_call_new_in(c, id, path, sizeof *g, free_incoming);
    if (!g)
        return;
    struct unpacking *u = file_work_new(&g->fc, sizeof *u,
                                        &(struct file_work){.work.is_long = true,
                                                            .slice = unpacking_slice,
                                                            .then = unpack_on_slice,
                                                            .empty = unpacking_empty});
    if (!u)
        return;
    g->unpacking = u;
    g->done = done;
    g->fd = u->spool = -1;
    g->fc.writes = true;
    const struct live *l = file_call_live(&g->fc);
    if (!l)
        return;
    u->most = files_room(live_sandbox(l));
    u->most_files = files_room_names(live_sandbox(l));
    u->depth = entry_depth(g->fc.path);
    if (http_body_length(c->req) > u->most) {
        too_much(g);
        return;
    }
    struct err e;
    if (store_spool_open(c->api->o.store, &u->spool, &e) < 0)
        cannot_keep(g, &e);
    else
        http_proceed(c->req);
}
