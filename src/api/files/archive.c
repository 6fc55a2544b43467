/* See archive.h. The tree is walked by pages of init's listing, and each file is opened by init
 * when its turn comes. What becomes of a page and of a file's bytes is made beside the loop
 * (file_work.h), in slices: a slice ends with what comes out and with what it needs next, and the
 * loop sends the one and asks for the other. A slow client holds the slices up through the stream's
 * backlog. The tree may change all the time: a file that is gone is left out, one that has become
 * shorter is filled up with zeros, as tar wants as many bytes as were announced. */

#include "api/files/archive.h"

#include "api/files/file_work.h"
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

#define BLOCK        (64u << 10)
#define OUT_MOST     (48u << 10) /* bytes for the client after which a slice ends */
#define PAGE_MOST    1000
#define LEFT_OUT     "cloche-left-out.txt"
#define LEFT_OUT_MAX (64u << 10)

enum need {
    NEED_SLICE,
    NEED_FILE, /* the entry's content */
    NEED_PAGE, /* after `last` */
    NEED_NOTHING,
};

/* What the slices touch. */
struct packing {
    struct file_work work;
    char *top; /* owned: paths in the archive begin below it */
    bool only_files;
    struct packer *packer; /* owned; NULL before the first slice */
    struct file_page page;
    char *last;          /* owned: the last path of the page before */
    struct buf left_out; /* directories that lie too deep, a line each */
    struct entry entry;  /* borrowed from the page: whose content is packed */
    int fd;              /* owned: its content; or -1 */
    bool is_announced;   /* `left` and `pos` are set */
    uint64_t left, pos;
    enum need need; /* after the slice */
    struct err why; /* code 0: all is well */
    struct buf out; /* for the client */
    int read_fd;    /* owned: a file that was read; or -1 */
};

struct outgoing {
    struct file_call fc;
    struct archive_form form;
    struct packing *packing; /* owned, unless a slice is at work */
    bool is_through;         /* the client has all of it, or will not get it */
};

/* ---- beside the loop: entries ---- */

static void keep_out(void *arg, const void *data, size_t len) {
    struct packing *p = arg;
    buf_add(&p->out, data, len);
}

/* Paths in the archive begin below what was asked for. */
static const char *name_in_archive(const struct packing *p, const char *path) {
    size_t len = strlen(p->top);
    if (len && strcmp(path, p->top) == 0)
        return paths_name(path);
    return path + len + (len > 0);
}

static int pack_entry(struct packing *p, enum pack_type type, uint64_t size) {
    const struct entry *f = &p->entry;
    const struct pack_entry entry = {.type = type,
                                     .path = name_in_archive(p, f->path),
                                     .target = f->target,
                                     .mode = f->mode,
                                     .size = size,
                                     .mtime_ns = f->mtime_ns};
    return packer_entry(p->packer, &entry, &p->why);
}

static int announce_file(struct packing *p) {
    struct stat st;
    if (fstat(p->fd, &st) < 0)
        return err_sys(&p->why, "look at a file");
    p->is_announced = true;
    p->left = (uint64_t)st.st_size;
    p->pos = 0;
    return pack_entry(p, PACK_FILE, p->left);
}

static int pack_content(struct packing *p) {
    char block[BLOCK];
    size_t want = p->left < sizeof block ? (size_t)p->left : sizeof block;
    if (!p->is_announced)
        return announce_file(p);
    ssize_t n = want ? pread(p->fd, block, want, (off_t)p->pos) : 0;
    if (n < 0)
        return err_sys(&p->why, "read a file");
    memset(block + n, 0, want - (size_t)n);
    p->pos += want;
    p->left -= want;
    if (p->left == 0) {
        p->read_fd = fd_take(&p->fd);
        p->is_announced = false;
    }
    return packer_data(p->packer, block, want, &p->why);
}

/* What is in this directory is not in the archive; whoever unpacks it is told. */
static void leave_deep(struct packing *p, const char *path) {
    if (p->left_out.len < LEFT_OUT_MAX)
        buf_addf(&p->left_out, "%s\n", path);
}

static int tell_left_out(struct packing *p) {
    const struct pack_entry f = {.type = PACK_FILE,
                                 .path = LEFT_OUT,
                                 .target = "",
                                 .mode = 0644,
                                 .size = p->left_out.len,
                                 .mtime_ns = clock_ns(CLOCK_REALTIME)};
    if (!p->left_out.len)
        return 0;
    return packer_entry(p->packer, &f, &p->why) < 0
               ? -1
               : packer_data(p->packer, p->left_out.data, p->left_out.len, &p->why);
}

/* ---- beside the loop: the walk ---- */

/* If the next page is gone, there is nothing more of it. */
static int end_page(struct packing *p) {
    bool is_cut = p->page.cut;
    file_page_done(&p->page);
    p->page = (struct file_page)FILE_PAGE_INIT;
    p->need = is_cut ? NEED_PAGE : NEED_NOTHING;
    return is_cut || (tell_left_out(p) == 0 && packer_end(p->packer, &p->why) == 0) ? 0 : -1;
}

static int pack_record(struct packing *p) {
    int r = file_page_next(&p->page, &p->entry);
    if (r < 0)
        return err_set(&p->why, EPROTO, "the list is malformed");
    if (r == 0)
        return end_page(p);
    if (file_page_is_read(&p->page)) {
        free(p->last);
        p->last = xstrdup(p->entry.path);
    }
    if (p->entry.deep)
        leave_deep(p, p->entry.path);
    if (p->entry.type == ENTRY_FILE)
        p->need = NEED_FILE;
    if (p->entry.type == ENTRY_FILE || p->entry.type == ENTRY_OTHER || p->only_files)
        return 0;
    return pack_entry(p, p->entry.type == ENTRY_SYMLINK ? PACK_SYMLINK : PACK_DIRECTORY, 0);
}

static void packing_slice(struct file_work *w) {
    struct packing *p = (struct packing *)w;
    int r = p->packer ? 0 : packer_new(keep_out, p, &p->packer, &p->why);
    p->need = NEED_SLICE;
    while (r == 0 && p->need == NEED_SLICE && p->out.len < OUT_MOST && file_work_has_time(w))
        r = p->fd >= 0 ? pack_content(p) : pack_record(p);
}

static void packing_empty(struct file_work *w) {
    struct packing *p = (struct packing *)w;
    packer_free(p->packer);
    crew_close(w->crew, &p->fd); /* SECURITY: it may be deleted, and large */
    crew_close(w->crew, &p->read_fd);
    file_page_done(&p->page);
    buf_done(&p->left_out);
    buf_done(&p->out);
    free(p->last);
    free(p->top);
}

/* ---- in the loop ---- */

static void free_outgoing(struct file_call *fc) {
    const struct outgoing *g = (const struct outgoing *)fc;
    if (g->packing)
        file_work_leave(&g->packing->work);
}

static void next_slice(struct outgoing *g) {
    if (http_backlog(g->fc.call->req) <= HTTP_HIGH_WATER) /* else archive_on_drain goes on */
        file_work_go(&g->packing->work);
}

static void archive_on_drain(struct http_req *r) {
    const struct call *c = http_user(r);
    struct outgoing *g = c->state;
    if (!g->is_through && !g->packing->work.is_beside && !file_call_waits(&g->fc))
        next_slice(g);
}

/* The client has a part already. */
static void give_up(struct outgoing *g, const char *why) {
    g->is_through = true;
    log_warn("archive cut id=%s why=%s", g->fc.call->who.request, log_text(why));
    http_abort(g->fc.call->req);
}

static void archive_on_open(struct file_call *fc, struct file_answer *a) {
    struct outgoing *g = (struct outgoing *)fc;
    g->packing->fd = fd_take(&a->fd);
    next_slice(g);
}

static void archive_on_page(struct file_call *fc, struct file_answer *a) {
    struct outgoing *g = (struct outgoing *)fc;
    file_page_move(&g->packing->page, &a->page);
    next_slice(g);
}

/* What cannot be opened is not there any more, or was never a file. */
static bool leave_out(struct file_call *fc, int errnum) {
    if (errnum == EPROTO)
        return false;
    next_slice((struct outgoing *)fc);
    return true;
}

static void ask_open(struct outgoing *g) {
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_READ, .path = g->packing->entry.path},
                  archive_on_open);
}

static void ask_page(struct outgoing *g) {
    const struct file_question q = {.op = FILE_LIST,
                                    .path = g->fc.path,
                                    .recursive = true,
                                    .most = PAGE_MOST,
                                    .after = g->packing->last};
    file_call_ask(&g->fc, &q, archive_on_page);
}

static void finish(struct outgoing *g) {
    g->is_through = true;
    http_end(g->fc.call->req);
}

static void archive_on_slice(struct file_call *fc) {
    static void (*const get[])(struct outgoing *) = {[NEED_SLICE] = next_slice,
                                                     [NEED_FILE] = ask_open,
                                                     [NEED_PAGE] = ask_page,
                                                     [NEED_NOTHING] = finish};
    struct outgoing *g = (struct outgoing *)fc;
    struct packing *p = g->packing;
    crew_close(p->work.crew, &p->read_fd);
    if (p->why.code) {
        give_up(g, p->why.text);
        return;
    }
    http_write(fc->call->req, p->out.data, p->out.len);
    buf_clear(&p->out);
    get[p->need](g);
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
    if (g->form.whole)
        name_it(g);
    http_on_drain(r, archive_on_drain);
    http_stream(r, 200, g->form.type);
    g->fc.begun = true;
    if (strcmp(http_method(r), "HEAD") != 0)
        next_slice(g);
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
        g->packing->page.cut = true;
    else
        file_page_of(&g->packing->page, &a->entry);
    fc->on_error = leave_out;
    begin(g);
}

void files_archive(struct call *c, const char *id, const char *path, const struct archive_form *f) {
    struct outgoing *g = file_call_new_in(c, id, path, sizeof *g, free_outgoing);
    if (!g)
        return;
    g->form = *f;
    struct packing *p = file_work_new(&g->fc, sizeof *p,
                                      &(struct file_work){.slice = packing_slice,
                                                          .then = archive_on_slice,
                                                          .empty = packing_empty});
    if (!p)
        return;
    p->top = xstrdup(g->fc.path);
    p->only_files = f->only_files;
    p->page = (struct file_page)FILE_PAGE_INIT;
    p->left_out = p->out = (struct buf)BUF_INIT;
    p->fd = p->read_fd = -1;
    g->packing = p;
    file_call_ask(&g->fc, &(struct file_question){.op = FILE_STAT, .path = g->fc.path},
                  archive_on_stat);
}
