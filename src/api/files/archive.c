/* See archive.h. The tree is walked by pages of init's listing, each file is opened by init when
 * its turn comes, and what a turn of the loop does is bounded, so that others are served meanwhile;
 * a slow client holds it up through the stream's backlog. The tree may change all the time: a file
 * that is gone is left out, one that has become shorter is filled up with zeros, as tar wants as
 * many bytes as were announced. */

#include "api/files/archive.h"

#include "api/files/file_call.h"
#include "api/files/paths.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "pack/packer.h"

#include <errno.h>
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
    struct file_call fc;
    struct archive_form form;
    struct packer *packer; /* owned; NULL until the reply has begun */
    struct timer turn;
    struct file_page page;
    char *last;          /* owned: the last path of this page */
    struct buf left_out; /* directories that lie too deep, a line each */
    struct entry entry;  /* borrowed from the page: whose content is sent */
    int fd;              /* owned: its content; or -1 */
    uint64_t left, pos;
};

static void free_outgoing(struct file_call *fc) {
    struct outgoing *g = (struct outgoing *)fc;
    loop_timer_stop(fc->call->api->o.loop, &g->turn);
    packer_free(g->packer);
    fd_close(&g->fd);
    file_page_done(&g->page);
    free(g->last);
    buf_done(&g->left_out);
}

static void next_turn(struct outgoing *g) {
    if (!file_call_waits(&g->fc))
        loop_timer_in_ms(g->fc.call->api->o.loop, &g->turn, 0);
}

/* The client has a part already. */
static void give_up(struct outgoing *g, const char *why) {
    log_warn("archive cut id=%s why=%s", g->fc.call->who.request, log_text(why));
    http_abort(g->fc.call->req);
}

static void to_client(void *arg, const void *data, size_t len) {
    struct outgoing *g = arg;
    http_write(g->fc.call->req, data, len);
}

/* Paths in the archive begin below what was asked for. */
static const char *name_in_archive(const struct outgoing *g, const char *path) {
    size_t len = strlen(g->fc.path);
    if (len && strcmp(path, g->fc.path) == 0)
        return paths_name(path);
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

static void archive_on_open(struct file_call *fc, struct file_answer *a) {
    struct outgoing *g = (struct outgoing *)fc;
    struct stat st;
    if (fstat(a->fd, &st) == 0 && add_entry(g, PACK_FILE, (uint64_t)st.st_size)) {
        g->fd = fd_take(&a->fd);
        g->left = (uint64_t)st.st_size;
        g->pos = 0;
    }
    next_turn(g);
}

/* What cannot be opened is not there any more, or was never a file. */
static bool leave_out(struct file_call *fc, int errnum) {
    if (errnum == EPROTO)
        return false;
    next_turn((struct outgoing *)fc);
    return true;
}

static void ask_open(struct outgoing *g) {
    g->fc.on_error = leave_out;
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_READ, .path = g->entry.path},
                  archive_on_open);
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

static void archive_on_page(struct file_call *fc, struct file_answer *a) {
    struct outgoing *g = (struct outgoing *)fc;
    file_page_move(&g->page, &a->page);
    next_turn(g);
}

static void ask_page(struct outgoing *g) {
    const struct file_question q = {.op = FILE_LIST,
                                    .path = g->fc.path,
                                    .recursive = true,
                                    .most = PAGE_MOST,
                                    .after = g->last};
    g->page.cut = false; /* if it is gone, there is nothing more of it */
    g->fc.on_error = leave_out;
    file_call_ask(&g->fc, &q, archive_on_page);
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
        http_end(g->fc.call->req);
}

static void end_of_page(struct outgoing *g) {
    if (g->page.cut)
        ask_page(g);
    else
        send_end(g);
}

/* True when there is more to do in this turn. */
static bool take_record(struct outgoing *g) {
    int r = file_page_next(&g->page, &g->entry);
    if (r == 0)
        end_of_page(g);
    if (r < 0)
        give_up(g, "the list is malformed");
    if (r <= 0)
        return false;
    if (file_page_is_read(&g->page)) {
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

static void archive_on_turn(struct timer *t) {
    struct outgoing *g = t->arg;
    if (http_backlog(g->fc.call->req) > HTTP_HIGH_WATER)
        return; /* archive_on_drain goes on */
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

static void archive_on_drain(struct http_req *r) {
    struct call *c = http_user(r);
    next_turn(c->state);
}

/* ---- the beginning ---- */

static void name_it(struct outgoing *g) {
    AUTO_BUF name = BUF_INIT, text = BUF_INIT;
    const char *last = *g->fc.path ? paths_name(g->fc.path) : g->form.whole;
    buf_addf(&name, "%s.tar.gz", last);
    paths_disposition(name.data, &text);
    http_add_header(g->fc.call->req, "Content-Disposition", text.data);
}

static void begin(struct outgoing *g) {
    struct http_req *r = g->fc.call->req;
    struct err e;
    if (packer_new(to_client, g, &g->packer, &e) < 0) {
        call_fail(g->fc.call, &e);
        return;
    }
    if (g->form.whole)
        name_it(g);
    http_on_drain(r, archive_on_drain);
    http_stream(r, 200, g->form.type);
    g->fc.begun = true;
    if (strcmp(http_method(r), "HEAD") != 0)
        next_turn(g);
}

/* A file is an archive of its own; the record becomes the only page. */
static void archive_on_stat(struct file_call *fc, struct file_answer *a) {
    struct outgoing *g = (struct outgoing *)fc;
    bool is_directory = a->entry.type == ENTRY_DIRECTORY;
    if (!is_directory && g->form.only_directory) {
        file_call_fail(fc, ENOENT, "this is no directory");
        return;
    }
    if (is_directory)
        g->page.cut = true;
    else
        file_page_of(&g->page, &a->entry);
    begin(g);
}

void files_archive(struct call *c, const char *id, const char *path, const struct archive_form *f) {
    struct outgoing *g = file_call_new_in(c, id, path, sizeof *g, free_outgoing);
    if (!g)
        return;
    g->form = *f;
    g->fd = -1;
    g->page = (struct file_page)FILE_PAGE_INIT;
    g->left_out = (struct buf)BUF_INIT;
    g->turn = (struct timer){.fn = archive_on_turn, .arg = g};
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_STAT, .path = g->fc.path},
                  archive_on_stat);
}
