/* See loop.h. epoll for descriptors and a binary heap for timers. A batch of events is handled one
 * by one; taking a watch out also strikes it from the rest of the batch, so no event reaches an
 * object that is gone. Deferred calls run when the batch is through; what they defer in their turn
 * waits for the next batch, which then is not waited for: nobody holds the loop by deferring.
 *
 * SECURITY: no epoll descriptor ever watches another. Adding a watch to a nested epoll takes a
 * mutex of the whole machine, and a hostile program with many watches holds that mutex for long
 * (Linux 6.18: epnested_mutex). So poll() waits for a library's epoll beside ours. */

#include "loop/loop.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define BATCH      64
#define LOOK_MS    10
#define LAST_TURNS 16 /* of deferred calls, after the loop has stopped */

struct loop {
    int epoll;
    struct watch *outer; /* borrowed; NULL: there is none */
    bool stop;
    struct epoll_event batch[BATCH];
    int nbatch, at;
    struct timer **heap; /* heap[1..ntimers] */
    size_t ntimers, heap_cap;
    struct deferred *deferred, **deferred_end;
    struct loop_turns turns;
    bool measures;
    uint64_t turn;
    uint64_t cpu_ns; /* of this thread, at the end of the last turn */
};

int loop_new(struct loop **ret, struct err *e) {
    AUTO_FD epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        return err_sys(e, "epoll_create1");
    struct loop *l = xcalloc(1, sizeof *l);
    l->epoll = fd_take(&epoll);
    l->deferred_end = &l->deferred;
    *ret = l;
    return 0;
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    fd_close(&l->epoll);
    free(l->heap);
    free(l);
}

int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events, struct err *e) {
    struct epoll_event ev = {.events = events, .data.ptr = w};
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
        return err_sys(e, "watch descriptor %d", fd);
    w->fd = fd;
    w->events = events;
    return 0;
}

void loop_watch_epoll(struct loop *l, struct watch *w, int fd) {
    w->fd = fd;
    w->events = EPOLLIN;
    l->outer = w;
}

int loop_rewatch(struct loop *l, struct watch *w, uint32_t events, struct err *e) {
    if (w->events == events)
        return 0;
    struct epoll_event ev = {.events = events, .data.ptr = w};
    if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev) < 0)
        return err_sys(e, "change watch of descriptor %d", w->fd);
    w->events = events;
    return 0;
}

void loop_unwatch(struct loop *l, struct watch *w) {
    if (w->fd < 0)
        return;
    if (l->outer == w)
        l->outer = NULL;
    else
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = l->at; i < l->nbatch; i++) {
        if (l->batch[i].data.ptr == w)
            l->batch[i].data.ptr = NULL;
    }
}

static void heap_put(struct loop *l, size_t place, struct timer *t) {
    l->heap[place] = t;
    t->place = place;
}

static void heap_up(struct loop *l, struct timer *t) {
    size_t p = t->place;
    for (; p > 1 && l->heap[p / 2]->at_ns > t->at_ns; p /= 2)
        heap_put(l, p, l->heap[p / 2]);
    heap_put(l, p, t);
}

static void heap_down(struct loop *l, struct timer *t) {
    size_t p = t->place;
    for (;;) {
        size_t child = 2 * p;
        if (child > l->ntimers)
            break;
        if (child < l->ntimers && l->heap[child + 1]->at_ns < l->heap[child]->at_ns)
            child++;
        if (l->heap[child]->at_ns >= t->at_ns)
            break;
        heap_put(l, p, l->heap[child]);
        p = child;
    }
    heap_put(l, p, t);
}

void loop_timer(struct loop *l, struct timer *t, uint64_t at_ns) {
    t->at_ns = at_ns;
    if (!t->place) {
        if (l->ntimers + 2 > l->heap_cap) {
            l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 64;
            l->heap = xrealloc(l->heap, l->heap_cap * sizeof *l->heap);
        }
        t->place = ++l->ntimers;
    }
    heap_up(l, t);
    heap_down(l, t);
}

void loop_timer_in_ms(struct loop *l, struct timer *t, uint64_t ms) {
    loop_timer(l, t, now_ns() + ms_to_ns(ms));
}

void loop_timer_stop(struct loop *l, struct timer *t) {
    if (!t->place)
        return;
    struct timer *last = l->heap[l->ntimers--];
    if (last != t) {
        last->place = t->place;
        heap_up(l, last);
        heap_down(l, last);
    }
    t->place = 0;
}

void loop_defer(struct loop *l, struct deferred *d) {
    if (d->queued)
        return;
    d->queued = true;
    d->next = NULL;
    *l->deferred_end = d;
    l->deferred_end = &d->next;
}

/* Runs the calls that stand in the list now. */
static void run_deferred(struct loop *l) {
    struct deferred *first = l->deferred;
    l->deferred = NULL;
    l->deferred_end = &l->deferred;
    while (first) {
        struct deferred *d = first;
        first = d->next;
        d->queued = false;
        d->fn(d);
    }
}

/* Milliseconds until the first timer, rounded up; -1 when there is none. */
static int wait_ms(const struct loop *l) {
    if (l->deferred)
        return 0;
    if (!l->ntimers)
        return -1;
    uint64_t now = now_ns(), at = l->heap[1]->at_ns;
    if (at <= now)
        return 0;
    uint64_t ms = (at - now + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}

static void run_timers(struct loop *l) {
    uint64_t now = now_ns();
    while (l->ntimers && l->heap[1]->at_ns <= now) {
        struct timer *t = l->heap[1];
        loop_timer_stop(l, t);
        t->fn(t);
    }
}

void loop_measure(struct loop *l) {
    l->measures = true;
    l->cpu_ns = thread_cpu_ns();
}

/* Processor time since the end of the last turn: the wait in between takes none. */
static void note_turn(struct loop *l, uint64_t began_ns) {
    uint64_t cpu_ns = thread_cpu_ns();
    histogram_add(&l->turns.wall, (double)(now_ns() - began_ns) / 1e9);
    histogram_add(&l->turns.cpu, (double)(cpu_ns - l->cpu_ns) / 1e9);
    l->cpu_ns = cpu_ns;
}

uint64_t loop_turn(const struct loop *l) {
    return l->turn;
}

const struct loop_turns *loop_turns(const struct loop *l) {
    return &l->turns;
}

/* Waits for both, and says which are ready. poll() takes no more descriptors than the process may
 * have open: below two we look at the library's again and again. */
static int wait_for_either(const struct loop *l, bool *ret_ours, bool *ret_outer, int *ms) {
    struct pollfd p[] = {{.fd = l->epoll, .events = POLLIN},
                         {.fd = l->outer->fd, .events = POLLIN}};
    int n = poll(p, 2, *ms);
    if (n < 0 && errno == EINVAL) {
        *ret_ours = *ret_outer = true;
        *ms = *ms < 0 || *ms > LOOK_MS ? LOOK_MS : *ms;
        return 0;
    }
    *ret_ours = n > 0 && p[0].revents;
    *ret_outer = n > 0 && p[1].revents;
    *ms = 0;
    return n < 0 ? -1 : 0;
}

/* The next batch; *ret_outer is whether the library's descriptor is ready too. */
static int wait_batch(struct loop *l, bool *ret_outer, struct err *e) {
    bool ours = true;
    int ms = wait_ms(l);
    *ret_outer = false;
    int n = l->outer ? wait_for_either(l, &ours, ret_outer, &ms) : 0;
    if (n == 0 && ours)
        n = epoll_wait(l->epoll, l->batch, BATCH, ms);
    if (n < 0 && errno != EINTR)
        return err_sys(e, "wait for events");
    l->nbatch = n < 0 ? 0 : n;
    return 0;
}

static void run_batch(struct loop *l, bool outer) {
    for (l->at = 0; l->at < l->nbatch;) {
        struct epoll_event ev = l->batch[l->at++];
        struct watch *w = ev.data.ptr;
        if (w)
            w->fn(w, ev.events);
    }
    l->nbatch = 0;
    if (outer && l->outer)
        l->outer->fn(l->outer, EPOLLIN);
}

int loop_run(struct loop *l, struct err *e) {
    bool outer;
    while (!l->stop) {
        if (wait_batch(l, &outer, e) < 0)
            return -1;
        uint64_t began_ns = l->measures ? now_ns() : 0;
        l->turn++;
        run_batch(l, outer);
        run_timers(l);
        run_deferred(l);
        if (began_ns)
            note_turn(l, began_ns);
    }
    /* Run what frees memory. SECURITY: calls that a peer can repeat turn after turn are left. */
    for (int i = 0; l->deferred && i < LAST_TURNS; i++) {
        l->turn++;
        run_deferred(l);
    }
    l->stop = false;
    return 0;
}

void loop_stop(struct loop *l) {
    l->stop = true;
}

int loop_signals(const int *signals, size_t n, int *ret_fd, struct err *e) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, "block signals");
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? err_sys(e, "signalfd") : 0;
}
