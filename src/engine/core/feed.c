/* See feed.h. */

#include "engine/core/feed.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

static void feed_on_writable(struct watch *w, uint32_t events) {
    struct feed *f = w->arg;
    (void)events;
    f->on_room(f->arg);
}

void feed_init(struct feed *f) {
    f->watch = (struct watch){.fd = -1, .fn = feed_on_writable, .arg = f};
    f->data = (struct buf)BUF_INIT;
}

static void drop_text(struct feed *f) {
    json_decref(f->text);
    f->text = NULL;
    f->at = 0;
}

void feed_done(struct feed *f) {
    drop_text(f);
    buf_done(&f->data);
}

size_t feed_backlog(const struct feed *f) {
    return json_string_length(f->text) + f->data.len - f->at;
}

void feed_add(struct feed *f, const void *data, size_t len) {
    if (!f->text) { /* one that is never empty does not grow */
        buf_drop(&f->data, f->at);
        f->at = 0;
    }
    buf_add(&f->data, data, len);
}

void feed_stop(struct feed *f) {
    if (f->loop)
        loop_unwatch(f->loop, &f->watch);
}

struct rest {
    const char *data;
    size_t len;
};

static struct rest next_rest(struct feed *f) {
    if (f->text && f->at == json_string_length(f->text))
        drop_text(f);
    if (f->text)
        return (struct rest){json_string_value(f->text) + f->at,
                             json_string_length(f->text) - f->at};
    return (struct rest){f->data.data + f->at, f->data.len - f->at};
}

const void *feed_next(struct feed *f, size_t *ret_len) {
    struct rest rest = next_rest(f);
    *ret_len = rest.len;
    return rest.data;
}

void feed_drop(struct feed *f) {
    feed_stop(f);
    drop_text(f);
    buf_done(&f->data);
    f->data = (struct buf)BUF_INIT;
}

enum fed feed_pump(struct feed *f, int fd, size_t *taken) {
    struct err e;
    enum fed how = FED_ALL;
    size_t left = f->most ? f->most : SIZE_MAX;
    for (struct rest rest; (rest = next_rest(f)).len > 0;) {
        if (left == 0)
            return FED_SOME;
        ssize_t n = write(fd, rest.data, rest.len < left ? rest.len : left);
        if (n < 0 && errno == EAGAIN) {
            if (f->watch.fd < 0 && !f->most)
                loop_watch(f->loop, &f->watch, fd, EPOLLOUT, &e);
            return FED_SOME;
        }
        if (n < 0) {
            how = FED_GONE;
            break;
        }
        f->at += (size_t)n;
        *taken += (size_t)n;
        left -= f->most ? (size_t)n : 0;
    }
    drop_text(f);
    buf_clear(&f->data);
    feed_stop(f);
    return how;
}
