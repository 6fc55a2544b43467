/* See output.h. Bytes beyond the cap are read and thrown away, so that the program ends as it would
 * anywhere. */

#include "engine/output.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CHUNK        32768 /* fits into one message to a client of the socket */
#define DRAIN_CHUNKS 64

static size_t keep(struct output *o, const char *data, size_t len) {
    uint64_t left = o->cap - o->kept.len;
    if (len > left)
        len = (size_t)left;
    buf_add(&o->kept, data, len);
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
    return len;
}

/* False at the end of file, or when nothing is there. */
static bool read_some(struct output *o, size_t most) {
    char chunk[CHUNK];
    ssize_t n = read(o->fd, chunk, most < CHUNK ? most : CHUNK);
    if (n < 0 && errno != EIO) /* which is the end of a terminal */
        return errno == EINTR;
    if (n <= 0) {
        loop_unwatch(o->loop, &o->watch);
        return false;
    }
    o->total += (uint64_t)n;
    size_t told = o->is_terminal ? keep_end(o, chunk, (size_t)n) : keep(o, chunk, (size_t)n);
    if (told && o->on_data)
        o->on_data(o, chunk, told);
    return true;
}

static void on_readable(struct watch *w, uint32_t events) {
    struct output *o = w->arg;
    if (o->held &&
        events & (EPOLLHUP | EPOLLERR)) { /* cannot be masked; what is there stays there */
        loop_unwatch(o->loop, w);
        return;
    }
    read_some(o, CHUNK);
}

int output_begin(struct output *o, struct loop *l, int fd, uint64_t cap, struct err *e) {
    o->loop = l;
    o->fd = fd;
    o->cap = cap;
    o->kept = (struct buf)BUF_INIT;
    o->watch = (struct watch){.fd = -1, .fn = on_readable, .arg = o};
    return loop_watch(l, &o->watch, fd, EPOLLIN, e);
}

void output_reset(struct output *o, uint64_t cap) {
    buf_clear(&o->kept);
    o->total = 0;
    o->cap = cap;
}

void output_drain(struct output *o) {
    int there = 0;
    /* Of a terminal some may be on its way still: it comes as it is read. */
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

void output_hold(struct output *o, bool hold) {
    struct err e;
    if (o->held == hold)
        return;
    o->held = hold;
    if (o->watch.fd >= 0)
        loop_rewatch(o->loop, &o->watch, hold ? 0 : EPOLLIN, &e);
    else if (!hold && o->fd >= 0) /* it hung up while held */
        loop_watch(o->loop, &o->watch, o->fd, EPOLLIN, &e);
}

void output_end(struct output *o) {
    if (o->loop)
        loop_unwatch(o->loop, &o->watch);
    o->fd = -1;
}

void output_free(struct output *o) {
    output_end(o);
    buf_done(&o->kept);
}

bool output_truncated(const struct output *o) {
    return o->total > o->cap;
}
