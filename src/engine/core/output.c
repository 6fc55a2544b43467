/* See output.h. Bytes beyond the cap are read and thrown away, so that the program ends as it would
 * anywhere.
 *
 * SECURITY: a program that prints without end makes the server read without end. on_cost tells the
 * owner, who pays and may make the program wait; the first reads are free, and most programs need
 * no more. Many may print at once: all outputs share a part of each turn of the loop, and an output
 * that waits for its turn is not watched. */

#include "engine/core/output.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CHUNK        32768 /* fits into one message to a client of the socket */
#define DRAIN_CHUNKS 64
#define WORTH        16384u /* bytes: less is copied when somebody wants to share it */

#define FREE_READS 16
#define TURN_NS    4000u /* of the loop, for each read */

static void count(struct output *o) {
    size_t now = output_len(o);
    if (o->account)
        kept_count(o->account, o->counted, now);
    o->counted = now;
}

static size_t keep(struct output *o, const char *data, size_t len) {
    size_t there = output_len(o);
    uint64_t left = o->cap > there ? o->cap - there : 0;
    if (len > left)
        len = (size_t)left;
    size_t room = o->starved ? 0 : o->account ? (size_t)kept_room(o->account, there, len) : len;
    o->starved |= room < len;
    len = room;
    buf_add(&o->kept, data, len);
    count(o);
    return len;
}

static size_t keep_end(struct output *o, const char *data, size_t len) {
    struct buf *b = &o->kept;
    buf_add(b, data, len);
    if (b->len > 2 * o->cap) { /* not for every byte */
        memmove(b->data, b->data + b->len - o->cap, o->cap);
        b->len = o->cap;
        b->data[b->len] = '\0';
    }
    count(o);
    return len;
}

/* False at the end of file, or when nothing is there. */
static bool read_some(struct output *o, size_t most) {
    char chunk[CHUNK];
    ssize_t n = read(o->fd, chunk, most < CHUNK ? most : CHUNK);
    if (n < 0 && errno != EIO) /* EIO is the end of a terminal */
        return errno == EINTR;
    if (n <= 0) {
        loop_share_leave(&o->turn);
        loop_unwatch(o->loop, &o->watch);
        return false;
    }
    o->total += (uint64_t)n;
    size_t told = o->is_terminal ? keep_end(o, chunk, (size_t)n) : keep(o, chunk, (size_t)n);
    if (told && o->on_data)
        o->on_data(o, chunk, told);
    return true;
}

static void output_update(struct output *o) {
    struct err e;
    if (o->watch.fd >= 0)
        loop_rewatch(o->loop, &o->watch, o->held || o->turn.waits_for ? 0 : EPOLLIN, &e);
}

static void read_and_pay(struct output *o) {
    bool is_free = !o->on_cost || ++o->reads <= FREE_READS;
    uint64_t began = is_free ? 0 : thread_cpu_ns();
    read_some(o, CHUNK);
    if (!is_free)
        o->on_cost(o, thread_cpu_ns() - began + TURN_NS);
}

static void output_on_readable(struct watch *w, uint32_t events) {
    struct output *o = w->arg;
    if (o->held) { /* held earlier in this batch of events */
        if (events &
            (EPOLLHUP | EPOLLERR)) /* these cannot be masked; unread bytes stay in the pipe */
            loop_unwatch(o->loop, w);
        return;
    }
    if (!loop_share_begin(o->share, &o->turn)) {
        output_update(o);
        return;
    }
    read_and_pay(o);
    loop_share_end(o->share);
}

/* The output may have been held or drained meanwhile. */
static void output_on_turn(struct loop_sharer *who) {
    struct output *o = who->arg;
    if (!o->held)
        read_and_pay(o);
    output_update(o);
}

int output_begin(struct output *o, struct loop_share *s, int fd, uint64_t cap, struct err *e) {
    o->loop = s->loop;
    o->share = s;
    o->turn = (struct loop_sharer){.fn = output_on_turn, .arg = o, .owner = o->owner};
    o->fd = fd;
    o->cap = cap;
    o->kept = (struct buf)BUF_INIT;
    o->starved = false;
    o->reads = 0;
    count(o);
    o->watch = (struct watch){.fd = -1, .fn = output_on_readable, .arg = o};
    if (o->held && o->is_terminal)
        return 0;
    return loop_watch(o->loop, &o->watch, fd, o->held ? 0 : EPOLLIN, e);
}

static void let_go(struct output *o) {
    rope_done(&o->text);
    blob_unref(o->whole);
    o->whole = NULL;
}

void output_reset(struct output *o, uint64_t cap) {
    let_go(o);
    buf_clear(&o->kept);
    o->total = o->cleared = 0;
    o->cap = cap;
    o->starved = false;
    count(o);
}

void output_take(struct output *o, uint64_t cap, struct buf *ret) {
    *ret = o->kept;
    o->kept = (struct buf)BUF_INIT;
    output_reset(o, cap);
}

void output_put(struct output *o, const void *data, size_t len) {
    o->total += len;
    keep(o, data, len);
}

void output_clear(struct output *o, size_t but) {
    if (but > o->kept.len)
        but = o->kept.len;
    buf_drop(&o->kept, o->kept.len - but);
    o->cleared = o->total - but;
    o->starved = false;
    count(o);
}

void output_drain(struct output *o) {
    int there = 0;
    /* A terminal hands over more as we read: its count of bytes is not all. */
    for (int i = 0; o->is_terminal && o->fd >= 0 && i < DRAIN_CHUNKS; i++) {
        if (!read_some(o, CHUNK))
            return;
    }
    if (o->is_terminal || o->fd < 0 || ioctl(o->fd, FIONREAD, &there) < 0)
        return;
    while (there > 0) {
        uint64_t before = o->total;
        if (!read_some(o, (size_t)there))
            return;
        there -= (int)(o->total - before);
    }
}

void output_hold(struct output *o, enum output_hold why, bool hold) {
    struct err e;
    bool was_held = o->held;
    o->held = hold ? o->held | why : o->held & ~(unsigned)why;
    bool is_held = o->held;
    if (is_held == was_held)
        return;
    if (is_held && o->is_terminal) /* polling a terminal may block: see command_io.c */
        loop_unwatch(o->loop, &o->watch);
    else if (o->watch.fd >= 0)
        output_update(o);
    else if (!is_held && o->fd >= 0) /* the other end hung up while held */
        loop_watch(o->loop, &o->watch, o->fd, EPOLLIN, &e);
}

void outputs_hold(struct output out[2], enum output_hold why, bool hold) {
    output_hold(&out[0], why, hold);
    output_hold(&out[1], why, hold);
}

void output_end(struct output *o) {
    loop_share_leave(&o->turn);
    if (o->loop)
        loop_unwatch(o->loop, &o->watch);
    o->fd = -1;
}

void output_uncount(struct output *o) {
    if (o->account)
        kept_count(o->account, o->counted, 0);
    o->account = NULL;
}

void output_free(struct output *o) {
    output_end(o);
    let_go(o);
    buf_done(&o->kept);
    count(o);
}

size_t output_len(const struct output *o) {
    return o->text.bytes + o->kept.len;
}

static void share(struct rope *to, struct buf *text) {
    struct blob *b = blob_take(text);
    rope_add_text(to, b, 0, b->bytes.len);
    blob_unref(b);
}

/* A character at the end may be incomplete: its bytes stay behind. */
static void seal(struct output *o) {
    struct buf rest = BUF_INIT;
    size_t n = rope_cut(o->kept.data, o->kept.len, o->kept.len - 1);
    buf_add(&rest, o->kept.data + n, o->kept.len - n);
    o->kept.len = n;
    share(&o->text, &o->kept);
    o->kept = rest;
}

void output_share(struct output *o, struct rope *to) {
    struct buf copy = BUF_INIT;
    if (o->kept.len > WORTH && !o->is_terminal)
        seal(o);
    rope_add_rope(to, &o->text);
    buf_add(&copy, o->kept.data, o->kept.len);
    share(to, &copy);
}

void output_whole(struct output *o) {
    struct buf all = BUF_INIT;
    if (o->whole)
        return;
    for (size_t i = 0; i < o->text.n; i++) { /* somebody looked while it ran */
        const struct rope_piece *p = &o->text.pieces[o->text.first + i];
        buf_add(&all, p->of->bytes.data + p->from, p->len);
    }
    if (o->text.n) {
        buf_add(&all, o->kept.data, o->kept.len);
        buf_done(&o->kept);
    } else {
        all = o->kept;
        o->kept = (struct buf)BUF_INIT;
    }
    rope_done(&o->text);
    o->whole = blob_take(&all);
    rope_add_text(&o->text, o->whole, 0, o->whole->bytes.len);
}

bool output_truncated(const struct output *o) {
    return o->starved || o->total - o->cleared > o->cap;
}

bool output_starved(const struct output *o) {
    return o->starved;
}
