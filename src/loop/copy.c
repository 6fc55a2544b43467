/* See copy.h. The owner's word that it is not wanted any more is the one thing that the loop and a
 * thread both touch while a copy is under way. */

#include "loop/copy.h"

#include "base/buf.h"
#include "base/fd.h"
#include "loop/crew.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP  65536
#define STEPS 16 /* in a slice */

struct span {
    int from, to;
    uint64_t size, at, data_end; /* from `at` to `data_end` the source has no hole */
};

struct copy {
    struct work work;
    struct span span; /* owns its descriptors */
    bool (*step)(struct span *s, struct err *e);
    struct err why; /* code 0: all is well */
    atomic_bool left;
    void (*done)(void *arg, const struct err *why);
    void *arg;
};

/* All that is left is a hole. */
static int end_with_hole(const struct span *s, struct err *e) {
    struct stat st;
    if (fstat(s->from, &st) < 0)
        return err_sys(e, "look at the file to copy");
    if ((uint64_t)st.st_size < s->size)
        return err_set(e, EIO, "the file ends after %jd of %" PRIu64 " bytes", (intmax_t)st.st_size,
                       s->size);
    return ftruncate(s->to, (off_t)s->size) < 0 ? err_sys(e, "make the file longer") : 0;
}

/* Sets `at` and `data_end`; a file system that does not know holes has none. */
static int find_data(struct span *s, struct err *e) {
    off_t data = lseek(s->from, (off_t)s->at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
        s->at = s->data_end = s->size;
        return end_with_hole(s, e);
    }
    if (data >= 0 && (uint64_t)data >= s->size) {
        s->at = s->data_end = s->size;
        return end_with_hole(s, e);
    }
    if (data >= 0)
        s->at = (uint64_t)data;
    off_t hole = data < 0 ? -1 : lseek(s->from, data, SEEK_HOLE);
    s->data_end = hole > data && (uint64_t)hole < s->size ? (uint64_t)hole : s->size;
    return 0;
}

static int write_at(int fd, const char *data, size_t len, uint64_t at, struct err *e) {
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t)at);
        if (n < 0 && errno != EINTR)
            return err_sys(e, "write");
        if (n < 0)
            continue;
        data += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

/* Up to STEP bytes; false after the last, or with an error. */
static bool copy_step(struct span *s, struct err *e) {
    char chunk[STEP];
    if (s->at >= s->data_end && s->at < s->size && find_data(s, e) < 0)
        return false;
    if (s->at >= s->size)
        return false;
    uint64_t left = s->data_end - s->at;
    ssize_t n = pread(s->from, chunk, left < STEP ? (size_t)left : STEP, (off_t)s->at);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0)
        return err_sys(e, "read"), false;
    if (n == 0) {
        err_set(e, EIO, "the file ends after %" PRIu64 " of %" PRIu64 " bytes", s->at, s->size);
        return false;
    }
    if (write_at(s->to, chunk, (size_t)n, s->at, e) < 0)
        return false;
    s->at += (uint64_t)n;
    return s->at < s->size;
}

static bool compare_step(struct span *s, struct err *e) {
    char a[STEP], b[STEP];
    uint64_t left = s->size - s->at;
    size_t want = left < STEP ? (size_t)left : STEP;
    ssize_t n = pread(s->from, a, want, (off_t)s->at), m = pread(s->to, b, want, (off_t)s->at);
    if (n != m || n < 0 || memcmp(a, b, (size_t)n) != 0 || (n == 0 && want > 0)) {
        err_set(e, EILSEQ, "the files differ");
        return false;
    }
    s->at += (uint64_t)n;
    return s->at < s->size;
}

int copy_now(int from, int to, uint64_t size, struct err *e) {
    struct span s = {.from = from, .to = to, .size = size};
    struct err why = {0};
    while (copy_step(&s, &why))
        ;
    if (why.code == 0)
        return 0;
    *e = why;
    return -1;
}

static bool copy_slice(struct work *w) {
    struct copy *c = w->arg;
    for (int i = 0; i < STEPS; i++) {
        if (atomic_load(&c->left) || !c->step(&c->span, &c->why))
            return false;
    }
    return true;
}

static void copy_on_done(struct work *w) {
    struct copy *c = w->arg;
    fd_close(&c->span.from);
    fd_close(&c->span.to);
    if (!atomic_load(&c->left))
        c->done(c->arg, c->why.code ? &c->why : NULL);
    free(c);
}

static struct copy *begin_copy(struct crew *crew, const struct copy *how) {
    struct copy *c = xmalloc(sizeof *c);
    *c = *how;
    c->work = (struct work){.slice = copy_slice, .done = copy_on_done, .arg = c};
    crew_add(crew, &c->work);
    return c;
}

struct copy *copy_begin(struct crew *crew, int *from, int *to, uint64_t size,
                        void (*done)(void *arg, const struct err *why), void *arg) {
    return begin_copy(crew, &(struct copy){.span = {fd_take(from), fd_take(to), size, 0, 0},
                                           .step = copy_step,
                                           .done = done,
                                           .arg = arg});
}

struct copy *compare_begin(struct crew *crew, int *a, int *b, uint64_t size,
                           void (*done)(void *arg, const struct err *why), void *arg) {
    return begin_copy(crew, &(struct copy){.span = {fd_take(a), fd_take(b), size, 0, 0},
                                           .step = compare_step,
                                           .done = done,
                                           .arg = arg});
}

void copy_leave(struct copy *c) {
    if (c)
        atomic_store(&c->left, true);
}
