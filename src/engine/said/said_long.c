/* See said_long.h. */

#include "engine/said/said_long.h"

#include "base/clock.h"
#include "base/json.h"
#include "engine/core/memfd_read.h"
#include "wire/chan.h"
#include "wire/codec.h"

#define SHORT_MAX 4096 /* bytes of a message that is read in the loop: 0.2 ms at the worst */

static bool is_file(const struct k_say *m) {
    return m->json.len == 0 && m->file >= 0;
}

enum said_how said_get(struct wire_in *in, struct k_say *m, struct said *ret) {
    struct err e;
    if (k_say_get(in, m, &e) < 0)
        return SAID_BAD;
    if (is_file(m) || m->json.len > SHORT_MAX)
        return SAID_LONG;
    return said_read(m->json.data, m->json.len, ret, &e) < 0 ? SAID_BAD : SAID_SHORT;
}

static int read_long(struct said_long *l) {
    struct err e;
    if (l->fd >= 0 && memfd_read(l->fd, SAID_MAX, &l->text) < 0)
        return -1;
    int status = said_read(l->text.data, l->text.len, &l->said, &e);
    buf_done(&l->text);
    l->text = (struct buf)BUF_INIT;
    return status;
}

static bool said_long_slice(struct work *w) {
    struct said_long *l = w->arg;
    uint64_t began = thread_cpu_ns();
    l->is_bad = read_long(l) < 0;
    l->cpu_ns = thread_cpu_ns() - began;
    return false;
}

static void said_long_done(struct work *w) {
    struct said_long *l = w->arg;
    l->done(l);
}

void said_long_begin(struct said_long *l, uint64_t owner, struct wire_in *in,
                     const struct k_say *m) {
    l->fd = is_file(m) ? wire_keep(in, m->file) : -1;
    l->text = (struct buf)BUF_INIT;
    l->said = (struct said){.text = BUF_INIT};
    if (l->fd < 0)
        buf_add(&l->text, m->json.data, m->json.len);
    l->work =
        (struct work){.slice = said_long_slice,
                      .done = said_long_done,
                      .arg = l,
                      .owner = owner,
                      .is_long = l->fd >= 0}; /* SECURITY: even a small file has many values */
    crew_add(l->crew, &l->work);
}

void said_long_leave(struct said_long *l, struct chan *from) {
    if (l->fd >= 0)
        chan_leave(from, &l->fd, 1);
}

void said_long_end(struct said_long *l) {
    if (l->fd >= 0) /* SECURITY: we may hold the last reference to a large file */
        crew_close(l->crew, &l->fd);
    said_done(&l->said);
    buf_done(&l->text);
}

void said_go(int64_t number, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "op", "go");
    jw_key_int(&j, "go", number);
    jw_object_end(&j);
}
