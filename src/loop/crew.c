/* See crew.h. One queue of work to do and one of work that is through, both under one lock; an
 * eventfd tells the loop of the second. Each owner has a line for its work to do, and the lines
 * stand in a row: the first one has the turn, and is the last one after it. Few have work at the
 * same time, while an owner may have thousands of pieces. The threads block every signal, so that
 * the loop's signalfd gets them, and yield to the loop where processors are short.
 */

#include "loop/crew.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NICE         5
#define TURN_NS      1000000u /* of the loop, for what is through */
#define SMALL_BLOCKS 8192     /* of 512 bytes: a file that is freed in a moment */
#define CLOSES       200u     /* in a slice */

struct work_queue {
    struct work *first, **end;
};

/* Of one owner; there is none without work. */
struct line {
    struct line *next;
    uint64_t owner;
    struct work_queue todo[2]; /* short slices, and long ones */
};

struct crew {
    struct loop *loop; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_queue through;
    struct work_queue back;    /* the loop's: those of them that it has taken */
    struct line *lines;        /* owned */
    uint64_t added;            /* pieces of work, so far */
    unsigned nlong, most_long; /* long slices at work, and at most */
    bool stop;
    int event; /* owned */
    struct watch watch;
    pthread_t *threads; /* owned */
    unsigned nthreads;
};

static void queue_add(struct work_queue *q, struct work *w) {
    w->next = NULL;
    *q->end = w;
    q->end = &w->next;
}

static struct work *queue_take(struct work_queue *q) {
    struct work *w = LIST_POP(&q->first, next);
    if (!q->first)
        q->end = &q->first;
    return w;
}

/* All of it, to the end of the other. */
static void queue_move(struct work_queue *to, struct work_queue *from) {
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    *from = (struct work_queue){NULL, &from->first};
}

uint64_t crew_owner(const char *name) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; name && *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static struct line *line_of(struct crew *c, uint64_t owner) {
    struct line **at = &c->lines;
    for (; *at; at = &(*at)->next) {
        struct line *known = *at;
        if (known->owner == owner)
            return known;
    }
    struct line *l = xcalloc(1, sizeof *l);
    l->owner = owner;
    l->todo[false].end = &l->todo[false].first;
    l->todo[true].end = &l->todo[true].first;
    LIST_PUSH(at, l, next);
    return l;
}

static void todo_add(struct crew *c, struct work *w) {
    w->number = c->added++;
    queue_add(&line_of(c, w->owner)->todo[w->is_long], w);
}

/* The oldest that may be done now, or NULL. */
static struct work *line_take(struct line *l, bool may_be_long) {
    const struct work *quick = l->todo[false].first;
    const struct work *slow = may_be_long ? l->todo[true].first : NULL;
    if (slow && (!quick || slow->number < quick->number))
        return queue_take(&l->todo[true]);
    return queue_take(&l->todo[false]);
}

/* The next piece, or NULL. */
static struct work *todo_take(struct crew *c) {
    struct work *w = NULL;
    struct line **at = &c->lines;
    while (*at && !(w = line_take(*at, c->nlong < c->most_long)))
        at = &(*at)->next;
    if (!w)
        return NULL;
    struct line *l = LIST_POP(at, next);
    if (l->todo[false].first || l->todo[true].first)
        LIST_APPEND(at, l, next);
    else
        free(l);
    c->nlong += w->is_long;
    return w;
}

static void call_loop(struct crew *c) {
    const uint64_t one = 1;
    if (write(c->event, &one, sizeof one) < 0) {
        /* The counter is full: the loop has been told already. */
    }
}

static void *crew_thread(void *arg) {
    struct crew *c = arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        struct work *w = todo_take(c);
        if (!w) {
            pthread_cond_wait(&c->more, &c->lock);
            continue;
        }
        pthread_mutex_unlock(&c->lock);
        bool more = w->slice(w);
        pthread_mutex_lock(&c->lock);
        c->nlong -= w->is_long;
        if (more) {
            todo_add(c, w);
            continue;
        }
        queue_add(&c->through, w);
        call_loop(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Thousands may be through at once, when as many clients have left. */
static void crew_on_event(struct watch *watch, uint32_t events) {
    struct crew *c = watch->arg;
    uint64_t n, began = now_ns();
    (void)events;
    if (read(c->event, &n, sizeof n) < 0)
        return;
    pthread_mutex_lock(&c->lock);
    queue_move(&c->back, &c->through);
    pthread_mutex_unlock(&c->lock);
    while (c->back.first && now_ns() - began < TURN_NS) {
        struct work *w = queue_take(&c->back);
        w->done(w);
    }
    if (c->back.first)
        call_loop(c);
}

static int start_threads(struct crew *c, unsigned threads, struct err *e) {
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (c->nthreads < threads && error == 0) {
        error = pthread_create(&c->threads[c->nthreads], NULL, crew_thread, c);
        c->nthreads += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? 0 : err_set(e, error, "start a thread: %s", strerror(error));
}

int crew_new(struct loop *l, unsigned threads, struct crew **ret, struct err *e) {
    struct crew *c = xcalloc(1, sizeof *c);
    c->loop = l;
    c->most_long = threads > 1 ? threads - 1 : 1;
    c->through.end = &c->through.first;
    c->back.end = &c->back.first;
    c->threads = xcalloc(threads, sizeof *c->threads);
    c->watch = (struct watch){.fd = -1, .fn = crew_on_event, .arg = c};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);
    c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = c->event < 0 ? err_sys(e, "eventfd") : 0;
    if (status == 0)
        status = loop_watch(l, &c->watch, c->event, EPOLLIN, e);
    if (status == 0)
        status = start_threads(c, threads, e);
    if (status < 0) {
        crew_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void crew_free(struct crew *c) {
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->nthreads; i++)
        pthread_join(c->threads[i], NULL);
    loop_unwatch(c->loop, &c->watch);
    fd_close(&c->event);
    while (c->lines)
        free(LIST_POP(&c->lines, next));
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    free(c->threads);
    free(c);
}

void crew_add(struct crew *c, struct work *w) {
    pthread_mutex_lock(&c->lock);
    todo_add(c, w);
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
}

struct closing {
    struct work work;
    int fd;
    bool empty;
};

static void close_now(int *fd, bool empty) {
    if (empty)
        (void)!ftruncate(*fd, 0);
    fd_close(fd);
}

static bool close_it(struct work *w) {
    struct closing *c = w->arg;
    close_now(&c->fd, c->empty);
    return false;
}

static void free_closing(struct work *w) {
    free(w->arg);
}

static void close_beside(struct crew *c, int *fd, bool empty) {
    struct stat st;
    if (fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_blocks <= SMALL_BLOCKS) {
        close_now(fd, empty);
        return;
    }
    struct closing *it = xmalloc(sizeof *it);
    *it = (struct closing){
        .work = {.slice = close_it, .done = free_closing, .arg = it, .is_long = true},
        .fd = *fd,
        .empty = empty};
    *fd = -1;
    crew_add(c, &it->work);
}

void crew_close(struct crew *c, int *fd) {
    close_beside(c, fd, false);
}

struct closing_all {
    struct work work;
    int *fds; /* owned */
    unsigned n;
};

static bool close_some(struct work *w) {
    struct closing_all *c = w->arg;
    for (unsigned i = 0; c->n > 0 && i < CLOSES; i++)
        fd_close(&c->fds[--c->n]);
    return c->n > 0;
}

static void free_closing_all(struct work *w) {
    struct closing_all *c = w->arg;
    free(c->fds);
    free(c);
}

void crew_close_all(struct crew *c, int *fds, unsigned n) {
    struct closing_all *it = xmalloc(sizeof *it);
    *it = (struct closing_all){
        .work = {.slice = close_some, .done = free_closing_all, .arg = it, .is_long = true},
        .fds = fds,
        .n = n};
    crew_add(c, &it->work);
}

void crew_empty(struct crew *c, int *fd) {
    close_beside(c, fd, true);
}
