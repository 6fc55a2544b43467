/* See files.h. What there is to ask is a table: how the question is written, and how the answer is
 * read. An answer that makes no sense is an error like any other, EPROTO.
 *
 * SECURITY: lists are long, and many may come at once. Whoever asked for one gets it in a turn of
 * the loop that has time for it; all lists share a part of each, and tenants take turns. Init's
 * other words do not wait for that. */

#include "engine/core/files.h"

#include "base/fd.h"
#include "engine/core/budget.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"
#include "loop/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define RECORDS_MAX (8u << 20) /* more than init ever tells at once */

/* ---- what is asked ---- */

static void put_read(struct wire_out *o, const struct file_question *q) {
    i_open_put(o, &(struct i_open){.flags = O_RDONLY, .path = q->path});
}

static void put_create(struct wire_out *o, const struct file_question *q) {
    i_open_put(o, &(struct i_open){O_WRONLY | O_CREAT | O_TRUNC, q->mode, q->path});
}

static void put_stat(struct wire_out *o, const struct file_question *q) {
    i_stat_put(o, &(struct i_stat){.path = q->path});
}

static void put_list(struct wire_out *o, const struct file_question *q) {
    i_list_put(o, &(struct i_list){q->path, q->recursive, q->most, q->after});
}

static void put_mkdir(struct wire_out *o, const struct file_question *q) {
    i_mkdir_put(o, &(struct i_mkdir){.path = q->path, .mode = q->mode, .parents = true});
}

static void put_move(struct wire_out *o, const struct file_question *q) {
    i_move_put(o, &(struct i_move){.from = q->path, .to = q->to});
}

static void put_chmod(struct wire_out *o, const struct file_question *q) {
    i_chmod_put(o, &(struct i_chmod){.path = q->path, .mode = q->mode});
}

static void put_remove(struct wire_out *o, const struct file_question *q) {
    i_remove_put(o, &(struct i_remove){.path = q->path, .recursive = q->recursive});
}

static void put_temp(struct wire_out *o, const struct file_question *q) {
    (void)q;
    wire_begin(o, WIRE_I_TEMP);
}

static void put_place(struct wire_out *o, const struct file_question *q) {
    i_place_put(o, &(struct i_place){q->path, q->mode, q->mtime_ns, q->fd});
}

static void put_link(struct wire_out *o, const struct file_question *q) {
    i_link_put(o, &(struct i_link){.target = q->to, .path = q->path});
}

static void put_changes(struct wire_out *o, const struct file_question *q) {
    i_changes_put(o, &(struct i_changes){q->most, q->depth, q->since_ns});
}

/* ---- what is answered ---- */

static int take_fd(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                   struct err *e) {
    (void)who;
    struct i_reply_fd m;
    if (i_reply_fd_get(in, &m, e) < 0)
        return err_set(e, EPROTO, "init opened no file");
    a->fd = wire_keep(in, m.fd);
    return 0;
}

static int take_entry(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                      struct err *e) {
    (void)who;
    struct i_reply_entry m;
    if (i_reply_entry_get(in, &m, e) < 0)
        return err_set(e, EPROTO, "the record is malformed");
    const uint8_t *at = m.entry.data;
    return entry_get(&at, at + m.entry.len, &a->entry)
               ? 0
               : err_set(e, EPROTO, "the record is malformed");
}

static int take_replaced(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                         struct err *e) {
    (void)who;
    struct i_reply_place m;
    int r = i_reply_place_get(in, &m, e);
    a->replaced = m.replaced;
    return r;
}

static int take_nothing(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                        struct err *e) {
    (void)who, (void)a;
    return wire_get_nothing(in, e);
}

static const struct {
    void (*put)(struct wire_out *o, const struct file_question *q);
    int (*take)(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                struct err *e); /* NULL: a list */
} ops[] = {
    [FILE_READ] = {put_read, take_fd},        [FILE_CREATE] = {put_create, take_fd},
    [FILE_STAT] = {put_stat, take_entry},     [FILE_LIST] = {put_list, NULL},
    [FILE_MKDIR] = {put_mkdir, take_nothing}, [FILE_MOVE] = {put_move, take_nothing},
    [FILE_CHMOD] = {put_chmod, take_nothing}, [FILE_REMOVE] = {put_remove, take_nothing},
    [FILE_TEMP] = {put_temp, take_fd},        [FILE_PLACE] = {put_place, take_replaced},
    [FILE_LINK] = {put_link, take_nothing},   [FILE_CHANGES] = {put_changes, NULL},
};

static int take(const struct file_ask *who, struct wire_in *in, struct file_answer *a,
                struct err *e) {
    if (!in) {
        a->gone = true;
        return err_user(e, "sandbox_gone", "the sandbox is ending");
    }
    if (in->type == WIRE_I_REPLY)
        return ops[who->op].take(who, in, a, e);
    struct i_error m;
    i_error_get(in, &m, e);
    return err_set(e, m.errnum ? (int)m.errnum : EPROTO, "%s", m.why);
}

/* `who` may be gone after it. */
static void give(const struct file_ask *who, struct file_answer *a) {
    who->fn(who->arg, a);
    fd_close(&a->fd);
    file_page_done(&a->page);
    changes_done(&a->changes);
}

/* ---- lists ---- */

static int read_records(int fd, struct buf *ret, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size > RECORDS_MAX)
        return err_set(e, EPROTO, "the list is malformed");
    size_t len = (size_t)st.st_size;
    if (pread(fd, buf_reserve(ret, len), len, 0) != (ssize_t)len)
        return err_set(e, EPROTO, "the list is not whole");
    buf_commit(ret, len);
    return 0;
}

/* Whoever writes it to a client as it is read cannot say later that it was none. */
static int check_page(struct file_page *p, struct err *e) {
    struct entry f;
    int r;
    while ((r = file_page_next(p, &f)) > 0)
        ;
    p->at = 0;
    return r < 0 ? err_set(e, EPROTO, "the list is malformed") : 0;
}

static int read_list(const struct file_ask *who, int fd, struct file_answer *a, struct err *e) {
    AUTO_BUF changes = BUF_INIT;
    if (who->op == FILE_LIST)
        return read_records(fd, &a->page.records, e) < 0 ? -1 : check_page(&a->page, e);
    if (read_records(fd, &changes, e) < 0)
        return -1;
    return changes_parse((const uint8_t *)changes.data, changes.len, who->most, &a->changes, e);
}

static void files_on_turn(struct loop_sharer *turn) {
    struct file_ask *who = turn->arg;
    struct file_answer a = {
        .fd = -1, .page = {.records = BUF_INIT, .cut = who->cut}, .cut = who->cut};
    AUTO_FD records = fd_take(&who->records);
    struct err e;
    if (read_list(who, records, &a, &e) < 0)
        a.why = &e;
    give(who, &a);
}

/* Takes the list, for now or for another turn. */
static int list_came(struct file_ask *who, struct sandbox *s, struct wire_in *in, struct err *e) {
    struct loop_share *share = &s->engine->listing;
    struct i_reply_list m;
    if (i_reply_list_get(in, &m, e) < 0)
        return err_set(e, EPROTO, "the list is malformed");
    who->records = wire_keep(in, m.records);
    who->cut = m.cut;
    who->turn = (struct loop_sharer){
        .fn = files_on_turn, .arg = who, .owner = s->guest ? crew_owner(s->guest->tenant) : 0};
    if (loop_share_begin(share, &who->turn)) {
        files_on_turn(&who->turn);
        loop_share_end(share);
    }
    return 0;
}

static void files_on_answer(void *arg, struct wire_in *in) {
    struct file_ask *who = arg;
    struct file_answer a = {.fd = -1, .page = FILE_PAGE_INIT};
    struct sandbox *s = who->sandbox;
    struct err e;
    bool is_list = in && in->type == WIRE_I_REPLY && !ops[who->op].take;
    who->sandbox = NULL;
    if (is_list && list_came(who, s, in, &e) == 0)
        return;
    if (is_list || take(who, in, &a, &e) < 0)
        a.why = &e;
    give(who, &a);
}

/* ---- asking ---- */

bool files_ask(struct sandbox *s, const struct file_question *q, struct file_ask *who) {
    struct wire_out o;
    if (!s || s->nasked >= SANDBOX_MOST_ASKED)
        return false;
    ops[q->op].put(&o, q);
    who->sandbox = s;
    who->op = q->op;
    who->most = q->most;
    if (sandbox_ask_for(s, &o, files_on_answer, who))
        return true;
    who->sandbox = NULL;
    return false;
}

void files_unask(struct file_ask *who) {
    if (who->sandbox)
        sandbox_unask(who->sandbox, who);
    who->sandbox = NULL;
    if (!who->turn.waits_for)
        return;
    loop_share_leave(&who->turn);
    fd_close(&who->records);
}

bool files_is_asked(const struct file_ask *who) {
    return who->sandbox || who->turn.waits_for;
}

/* ---- pages ---- */

int file_page_next(struct file_page *p, struct entry *ret) {
    const uint8_t *start = (const uint8_t *)p->records.data, *at = start + p->at;
    if (file_page_is_read(p))
        return 0;
    if (!entry_get(&at, start + p->records.len, ret))
        return -1;
    p->at = (size_t)(at - start);
    return 1;
}

bool file_page_is_read(const struct file_page *p) {
    return p->at == p->records.len;
}

void file_page_move(struct file_page *to, struct file_page *from) {
    buf_done(&to->records);
    *to = *from;
    *from = (struct file_page)FILE_PAGE_INIT;
}

void file_page_of(struct file_page *to, const struct entry *only) {
    struct file_page page = FILE_PAGE_INIT;
    entry_put(&page.records, only);
    file_page_move(to, &page);
}

void file_page_done(struct file_page *p) {
    buf_done(&p->records);
}

/* ---- content ---- */

static bool look_at_disk(const struct sandbox *s, struct statfs *ret) {
    return s && fstatfs(s->fds[SANDBOX_WORKSPACE], ret) == 0;
}

/* What a sandbox without the workspace's descriptor has room for is found out by writing. */
static uint64_t unknown_room(const struct sandbox *s) {
    return s && s->state != SANDBOX_ENDING && s->fds[SANDBOX_WORKSPACE] < 0 ? UINT64_MAX : 0;
}

uint64_t files_room(const struct sandbox *s) {
    struct statfs f;
    return look_at_disk(s, &f) ? (uint64_t)f.f_bfree * (uint64_t)f.f_bsize : unknown_room(s);
}

uint64_t files_room_names(const struct sandbox *s) {
    struct statfs f;
    return look_at_disk(s, &f) ? f.f_ffree : unknown_room(s);
}

int files_fit(const struct sandbox *s, uint64_t bytes, struct err *e) {
    return budget_fits(s->engine, bytes, e);
}

int files_write(struct sandbox *s, int fd, const struct file_piece *p, struct err *e) {
    const char *data = p->data;
    if (budget_write(s, p->len, e) < 0)
        return -1;
    for (size_t done = 0; done < p->len;) {
        ssize_t n = pwrite(fd, data + done, p->len - done, (off_t)(p->at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "write a file of the sandbox");
        done += (size_t)n;
    }
    return 0;
}
