/* See crew.h. One queue of work to do and one of work that is through, both under one lock; an
 * eventfd tells the loop of the second. Work to do stands in the order of its turn: an owner's
 * first piece has the turn that is at hand, its next ones one later each. The threads block every
 * signal, so that the loop's signalfd gets them, and yield to the loop where processors are short.
 */

#include "loop/crew.h"

#include "base/buf.h"
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
#define SMALL_BLOCKS 8192 /* of 512 bytes: a file that is freed in a moment */

struct work_queue {
    struct work *first, **end;
};

struct crew {
    struct loop *loop; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_queue through;
    struct work *todo;         /* by turn */
    uint64_t turn;             /* of the piece that was taken last */
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

uint64_t crew_owner(const char *name) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; name && *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static void todo_add(struct crew *c, struct work *w) {
    struct work **at = &c->todo;
    w->turn = c->turn;
    for (const struct work *other = c->todo; other; other = other->next) {
        if (other->owner == w->owner)
            w->turn = other->turn + 1;
    }
    while (*at && (*at)->turn <= w->turn)
        at = &(*at)->next;
    LIST_PUSH(at, w, next);
}

/* The next piece, or NULL. */
static struct work *todo_take(struct crew *c) {
    struct work **at = &c->todo;
    while (*at && (*at)->is_long && c->nlong >= c->most_long)
        at = &(*at)->next;
    struct work *w = LIST_POP(at, next);
    if (!w)
        return NULL;
    if (w->turn > c->turn)
        c->turn = w->turn;
    c->nlong += w->is_long;
    return w;
}

static void finish_work(struct crew *c, struct work *w) {
    const uint64_t one = 1;
    queue_add(&c->through, w);
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
        if (more)
            todo_add(c, w);
        else
            finish_work(c, w);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void crew_on_event(struct watch *watch, uint32_t events) {
    struct crew *c = watch->arg;
    uint64_t n;
    (void)events;
    if (read(c->event, &n, sizeof n) < 0)
        return;
    pthread_mutex_lock(&c->lock);
    struct work *w = c->through.first;
    c->through = (struct work_queue){NULL, &c->through.first};
    pthread_mutex_unlock(&c->lock);
    while (w) {
        struct work *next = w->next;
        w->done(w);
        w = next;
    }
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

void crew_empty(struct crew *c, int *fd) {
    close_beside(c, fd, true);
}
