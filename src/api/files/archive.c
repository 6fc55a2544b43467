/* GET /v1/sandboxes/{id}/archive/{path}: a directory as tar.gz. The tree is walked by pages of
 * init's listing, each file is opened by init when its turn comes, and what a turn of the loop does
 * is bounded, so that others are served meanwhile; a slow client holds it up through the stream's
 * backlog. The tree may change all the time: a file that is gone is left out, one that has become
 * shorter is filled up with zeros, as tar wants as many bytes as were announced. */

#include "api/files/init_call.h"
#include "api/files/paths.h"
#include "api/files/sandbox_files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "pack/pack.h"
#include "wire/entry.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLICE        (128u << 10) /* bytes that are compressed in one turn of the loop */
#define ENTRIES      64           /* without content, likewise */
#define PAGE_MOST    1000
#define LEFT_OUT     "cloche-left-out.txt"
#define LEFT_OUT_MAX (64u << 10)

struct outgoing {
    struct box box;
    struct archive_form form;
    struct packer *packer; /* owned; NULL until the reply has begun */
    struct timer turn;
    struct buf page;     /* records */
    size_t at;           /* of the next one */
    bool cut;            /* there is another page */
    char *last;          /* owned: the last path of this page */
    struct buf left_out; /* directories that lie too deep, a line each */
    struct entry entry;  /* borrowed from the page: whose content is sent */
    int fd;              /* owned: its content; or -1 */
    uint64_t left, pos;
};

static void free_outgoing(struct box *b) {
    struct outgoing *g = (struct outgoing *)b;
    loop_timer_stop(b->call->api->o.loop, &g->turn);
    packer_free(g->packer);
    fd_close(&g->fd);
    buf_done(&g->page);
    free(g->last);
    buf_done(&g->left_out);
}

static void next_turn(struct outgoing *g) {
    if (!g->box.waiting)
        loop_timer(g->box.call->api->o.loop, &g->turn, now_ns());
}

/* The client has a part already. */
static void give_up(struct outgoing *g, const char *why) {
    log_warn("archive cut id=%s why=%s", g->box.call->id, log_text(why));
    http_abort(g->box.call->req);
}

static void to_client(void *arg, const void *data, size_t len) {
    struct outgoing *g = arg;
    http_write(g->box.call->req, data, len);
}

/* Paths in the archive begin below what was asked for. */
static const char *name_in_archive(const struct outgoing *g, const char *path) {
    size_t len = strlen(g->box.path);
    if (len && strcmp(path, g->box.path) == 0) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
    }
    return path + len + (len > 0);
}

static bool add_entry(struct outgoing *g, enum pack_type type, uint64_t size) {
    const struct entry *f = &g->entry;
    struct err e;
    if (packer_entry(g->packer,
                     &(struct pack_entry){.type = type,
                                          .path = name_in_archive(g, f->path),
                                          .target = f->target,
                                          .mode = f->mode,
                                          .size = size,
                                          .mtime_ns = f->mtime_ns},
                     &e) == 0)
        return true;
    give_up(g, e.text);
    return false;
}

/* ---- content ---- */

static void on_opened(struct box *b, struct wire_in *in) {
    struct outgoing *g = (struct outgoing *)b;
    struct stat st;
    AUTO_FD fd = wire_take_fd(in);
    if (fd >= 0 && fstat(fd, &st) == 0 && add_entry(g, PACK_FILE, (uint64_t)st.st_size)) {
        g->fd = fd_take(&fd);
        g->left = (uint64_t)st.st_size;
        g->pos = 0;
    }
    next_turn(g);
}

/* What cannot be opened is not there any more, or was never a file. */
static bool leave_out(struct box *b, int errnum) {
    (void)errnum;
    next_turn((struct outgoing *)b);
    return true;
}

static void ask_open(struct outgoing *g) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_OPEN);
    wire_put_u32(&o, O_RDONLY);
    wire_put_u32(&o, 0);
    wire_put_str(&o, g->entry.path);
    g->box.on_error = leave_out;
    box_ask(&g->box, &o, on_opened);
}

static void send_content(struct outgoing *g) {
    static char block[SLICE];
    struct err e;
    size_t want = g->left < sizeof block ? (size_t)g->left : sizeof block;
    ssize_t n = want ? pread(g->fd, block, want, (off_t)g->pos) : 0;
    if (n < 0) {
        give_up(g, strerror(errno));
        return;
    }
    memset(block + n, 0, want - (size_t)n);
    if (packer_data(g->packer, block, want, &e) < 0) {
        give_up(g, e.text);
        return;
    }
    g->pos += want;
    g->left -= want;
    if (g->left == 0)
        fd_close(&g->fd);
}

/* ---- the walk ---- */

static void on_page(struct box *b, struct wire_in *in) {
    struct outgoing *g = (struct outgoing *)b;
    (void)wire_get_u32(in);
    g->cut = wire_get_u32(in);
    g->at = 0;
    buf_clear(&g->page);
    if (box_records(in, &g->page) < 0)
        give_up(g, "the list is malformed");
    else
        next_turn(g);
}

static void ask_page(struct outgoing *g) {
    struct wire_out o;
    wire_begin(&o, WIRE_I_LIST);
    wire_put_str(&o, g->box.path);
    wire_put_u32(&o, true);
    wire_put_u32(&o, PAGE_MOST);
    wire_put_str(&o, g->last ? g->last : "");
    g->cut = false; /* if it is gone, there is nothing more of it */
    g->box.on_error = leave_out;
    box_ask(&g->box, &o, on_page);
}

/* What is in this directory is not in the archive; whoever unpacks it is told. */
static void leave_deep(struct outgoing *g, const char *path) {
    if (g->left_out.len < LEFT_OUT_MAX)
        buf_addf(&g->left_out, "%s\n", path);
}

static bool tell_left_out(struct outgoing *g, struct err *e) {
    const struct pack_entry f = {.type = PACK_FILE,
                                 .path = LEFT_OUT,
                                 .target = "",
                                 .mode = 0644,
                                 .size = g->left_out.len,
                                 .mtime_ns = clock_ns(CLOCK_REALTIME)};
    return !g->left_out.len || (packer_entry(g->packer, &f, e) == 0 &&
                                packer_data(g->packer, g->left_out.data, g->left_out.len, e) == 0);
}

static void send_end(struct outgoing *g) {
    struct err e;
    if (!tell_left_out(g, &e) || packer_end(g->packer, &e) < 0)
        give_up(g, e.text);
    else
        http_end(g->box.call->req);
}

static void end_of_page(struct outgoing *g) {
    if (g->cut)
        ask_page(g);
    else
        send_end(g);
}

/* True when there is more to do in this turn. */
static bool take_record(struct outgoing *g) {
    const uint8_t *start = (const uint8_t *)g->page.data, *at = start + g->at;
    if (g->at == g->page.len) {
        end_of_page(g);
        return false;
    }
    if (!entry_get(&at, start + g->page.len, &g->entry)) {
        give_up(g, "the list is malformed");
        return false;
    }
    g->at = (size_t)(at - start);
    if (g->at == g->page.len) {
        free(g->last);
        g->last = xstrdup(g->entry.path);
    }
    if (g->entry.deep)
        leave_deep(g, g->entry.path);
    if (g->entry.type == ENTRY_FILE) {
        ask_open(g);
        return false;
    }
    return g->entry.type == ENTRY_OTHER || g->form.only_files ||
           add_entry(g, g->entry.type == ENTRY_SYMLINK ? PACK_SYMLINK : PACK_DIRECTORY, 0);
}

static void on_turn(struct timer *t) {
    struct outgoing *g = t->arg;
    if (http_backlog(g->box.call->req) > HTTP_HIGH_WATER)
        return; /* on_drain goes on */
    if (g->fd >= 0) {
        send_content(g);
        next_turn(g);
        return;
    }
    for (int i = 0; i < ENTRIES; i++) {
        if (!take_record(g))
            return;
    }
    next_turn(g);
}

static void on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    next_turn(c->state);
}

/* ---- the beginning ---- */

static void name_it(struct outgoing *g) {
    AUTO_BUF name = BUF_INIT, text = BUF_INIT;
    const char *slash = strrchr(g->box.path, '/');
    const char *last = slash ? slash + 1 : *g->box.path ? g->box.path : g->form.whole;
    buf_addf(&name, "%s.tar.gz", last);
    paths_disposition(name.data, &text);
    http_add_header(g->box.call->req, "Content-Disposition", text.data);
}

static void begin(struct outgoing *g) {
    struct http_req *r = g->box.call->req;
    struct err e;
    if (packer_new(to_client, g, &g->packer, &e) < 0) {
        call_fail(g->box.call, &e);
        return;
    }
    if (g->form.whole)
        name_it(g);
    http_on_drain(r, on_drain);
    http_stream(r, 200, g->form.type);
    g->box.begun = true;
    if (strcmp(http_method(r), "HEAD") != 0)
        next_turn(g);
}

/* A file is an archive of its own; the record becomes the only page. */
static void on_stat(struct box *b, struct wire_in *in) {
    struct outgoing *g = (struct outgoing *)b;
    size_t len;
    const uint8_t *data = wire_get_bytes(in, &len), *at = data;
    struct entry f;
    if (!data || !entry_get(&at, data + len, &f)) {
        box_fail(b, EPROTO, "the record is malformed");
        return;
    }
    if (f.type != ENTRY_DIRECTORY && g->form.only_directory) {
        box_fail(b, ENOENT, "this is no directory");
        return;
    }
    if (f.type == ENTRY_DIRECTORY)
        g->cut = true;
    else
        buf_add(&g->page, data, len);
    begin(g);
}

void files_archive(struct call *c, const char *id, const char *path, const struct archive_form *f) {
    struct outgoing *g = box_new_in(c, id, path, sizeof *g, free_outgoing);
    struct wire_out o;
    if (!g)
        return;
    g->form = *f;
    g->fd = -1;
    g->page = g->left_out = (struct buf)BUF_INIT;
    g->turn = (struct timer){.fn = on_turn, .arg = g};
    wire_begin(&o, WIRE_I_STAT);
    wire_put_str(&o, g->box.path);
    box_ask(&g->box, &o, on_stat);
}

static void do_sandbox_archive(struct call *c) {
    files_archive(c, c->params[0], c->params[1],
                  &(struct archive_form){.type = "application/gzip"});
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/sandboxes/{id}/archive/{path...}", "Download a directory of a sandbox as tar.gz",
      "sandboxes", NULL, NULL, 200, "a tar.gz", "application/gzip"}, do_sandbox_archive},
};
/* clang-format on */
const struct route_table archive_routes = ROUTE_TABLE(routes);
