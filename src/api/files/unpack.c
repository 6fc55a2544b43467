/* PUT /v1/sandboxes/{id}/archive/{path}: a tar.gz into a directory. libarchive pulls its bytes, so
 * the body is kept in a file without a name among the server's state until all of it is here. Then
 * it is read twice, a bounded piece in each turn of the loop: first to see that nothing of it is
 * refused and that it fits, so that a bad archive changes nothing; then each entry is made by the
 * sandbox's init, files as uploads are. */

#include "api/files/init_call.h"
#include "api/files/sandbox_files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "pack/pack.h"
#include "wire/entry.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLICE   (256u << 10) /* bytes that are unpacked in one turn of the loop */
#define ENTRIES 64           /* that are looked at, likewise */
#define PAGE    4096u        /* a file that is not empty takes so much of a disk at least */

struct incoming {
    struct box box;
    files_done_fn *done;
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

static void free_incoming(struct box *b) {
    struct incoming *g = (struct incoming *)b;
    loop_timer_stop(b->call->api->o.loop, &g->turn);
    unpacker_free(g->unpacker);
    fd_close(&g->spool);
    fd_close(&g->fd);
}

static void next_turn(struct incoming *g) {
    if (!g->box.waiting)
        loop_timer(g->box.call->api->o.loop, &g->turn, now_ns());
}

static void refuse(struct incoming *g, const struct err *e) {
    if (strcmp(e->kind, "bad_archive") != 0) {
        box_fail(&g->box, e->code, e->text);
        return;
    }
    struct problem p = {.status = 422,
                        .code = "bad_archive",
                        .remediation = "send a tar.gz of files, directories and symlinks with "
                                       "relative paths; nothing was unpacked"};
    snprintf(p.text, sizeof p.text, "%s", e->text);
    call_problem(g->box.call, &p);
}

static void too_much(struct incoming *g) {
    box_disk_full(&g->box, "the archive holds more than the sandbox's disk has left");
}

/* ---- the second reading: entries are made ---- */

static void on_made(struct box *b, struct wire_in *in) {
    (void)in;
    next_turn((struct incoming *)b);
}

static bool is_there(struct box *b, int errnum) {
    if (errnum != EEXIST)
        return false;
    next_turn((struct incoming *)b);
    return true;
}

static void make_directory(struct incoming *g) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_MKDIR);
    wire_put_str(&o, g->path);
    wire_put_u32(&o, g->entry.mode);
    wire_put_u32(&o, true);
    g->box.on_error = is_there; /* if it is no directory, the first file in it fails */
    box_ask(&g->box, &o, on_made);
}

static void make_link(struct incoming *g) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_LINK);
    wire_put_str(&o, g->entry.target);
    wire_put_str(&o, g->path);
    g->files++;
    box_ask(&g->box, &o, on_made);
}

static void on_temp(struct box *b, struct wire_in *in) {
    struct incoming *g = (struct incoming *)b;
    g->fd = wire_take_fd(in);
    if (g->fd < 0)
        box_fail(b, EPROTO, "init made no file");
    else
        next_turn(g);
}

static void make_file(struct incoming *g) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_TEMP);
    box_ask(&g->box, &o, on_temp);
}

/* The whole path of the entry at hand; false when it is too long. */
static bool set_path(struct incoming *g) {
    const char *top = g->box.path, *path = g->entry.path;
    int n = snprintf(g->path, sizeof g->path, "%s%s%s", top, *top && *path ? "/" : "", path);
    return n >= 0 && (size_t)n < sizeof g->path;
}

static void make_entry(struct incoming *g) {
    static void (*const make[])(struct incoming *) = {
        [PACK_FILE] = make_file, [PACK_DIRECTORY] = make_directory, [PACK_SYMLINK] = make_link};
    g->box.on_error = NULL;
    if (!set_path(g))
        box_fail(&g->box, ENAMETOOLONG, "a path in the archive is too long below this directory");
    else if (*g->path)
        make[g->entry.type](g);
    else
        next_turn(g); /* the workspace itself */
}

static void place_file(struct incoming *g) {
    struct wire_out o;
    if (ftruncate(g->fd, (off_t)g->entry.size) < 0) { /* a hole may be its end */
        box_fail(&g->box, errno, g->path);
        return;
    }
    wire_begin(&o, WIRE_I_PLACE);
    wire_put_str(&o, g->path);
    wire_put_u32(&o, g->entry.mode);
    wire_put_u64(&o, g->entry.mtime_ns);
    wire_put_fd(&o, g->fd);
    g->files++;
    g->bytes += g->entry.size;
    box_ask(&g->box, &o, on_made);
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
        if (!box_write(&g->box, g->fd, &(struct live_piece){data, len, at},
                       "the sandbox's disk has no room for all of the archive"))
            return;
    }
    next_turn(g);
}

static void finish(struct incoming *g) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (g->done) {
        g->done(g->box.call, g->box.path);
        return;
    }
    jw_object(&j);
    jw_key_uint(&j, "files", g->files);
    jw_key_uint(&j, "bytes", g->bytes);
    jw_object_end(&j);
    call_json(g->box.call, 200, &json);
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
    if (r > 0 && entry_depth(g->box.path) + entry_depth(g->entry.path) > ENTRY_DEPTH_MAX)
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
    else if (box_fits(&g->box, g->sum) && reopen(g))
        next_turn(g);
}

static void check_on(struct incoming *g) {
    size_t done = 0;
    for (int i = 0; i < ENTRIES; i++) {
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

static void on_turn(struct timer *t) {
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
        box_fail(&g->box, e.code, "the server has no room to keep the archive");
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

void files_unpack(struct call *c, const char *id, const char *path, files_done_fn *done) {
    http_take_stream(c->req, upload_piece, upload_whole);
    struct incoming *g = box_new_in(c, id, path, sizeof *g, free_incoming);
    if (!g)
        return;
    g->done = done;
    g->fd = g->spool = -1;
    g->box.writes = true;
    g->turn = (struct timer){.fn = on_turn, .arg = g};
    struct live *l = box_live(&g->box);
    if (!l)
        return;
    g->most = live_room(l);
    g->most_files = live_room_files(l);
    if (http_body_length(c->req) > g->most) {
        too_much(g);
        return;
    }
    g->spool = open_spool(c->api->o.state_dir);
    if (g->spool < 0)
        box_fail(&g->box, errno, "the server cannot keep the archive");
    else
        http_proceed(c->req);
}

static void do_sandbox_archive_put(struct call *c) {
    files_unpack(c, c->params[0], c->params[1], NULL);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"PUT", "/v1/sandboxes/{id}/archive/{path...}", "Unpack a tar.gz into a directory of a sandbox",
      "sandboxes", NULL, "application/gzip", 200, "how much it was", JSON_TYPE},
     do_sandbox_archive_put},
};
/* clang-format on */
const struct route_table unpack_routes = ROUTE_TABLE(routes);
