/* Messages to and from a kernel. Long messages are read and written beside the loop. While one is
 * being read, no other kernel of its sandbox is heard; while one is being written, later messages
 * to that kernel wait behind it. */

#include "engine/kernel/kernel_talk.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/core/memory_watch.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/cell_event.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_query.h"
#include "engine/kernel/lent.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"
#include "engine/said/said_long.h"
#include "loop/crew.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_MAX (WIRE_MAX - 64)
#define MAX_UNREAD 64 /* answers for a kernel that does not read */

/* ---- to it ---- */

/* A message that is on its way: `head`, the text as a JSON string, `tail`. */
struct telling {
    struct telling *next;
    struct work work;
    struct kernel *kernel; /* borrowed; NULL when it is too late */
    bool is_ready;
    struct buf head, tail;
    json_t *text; /* owned; or NULL */
    size_t from, len;
    bool is_answer;
    int fd; /* owned: the message, when it is too long for one packet; then `len` is its length */
    struct err why;
};

static void telling_free(struct telling *t) {
    buf_done(&t->head);
    buf_done(&t->tail);
    json_decref(t->text);
    fd_close(&t->fd);
    free(t);
}

/* Beside the loop. */
static bool telling_slice(struct work *w) {
    struct telling *t = w->arg;
    struct jw j = JW_INIT(&t->head);
    if (t->text)
        jw_strn(&j, json_string_value(t->text) + t->from, t->len);
    buf_add(&t->head, t->tail.data, t->tail.len);
    t->len = t->head.len;
    if (lent_file(t->head.data, t->head.len, &t->fd, &t->why) < 0)
        t->fd = -1;
    buf_done(&t->head);
    t->head = (struct buf)BUF_INIT;
    return false;
}

static void tell(struct kernel *k, const struct buf *json, int fd) {
    struct wire_out o;
    k_do_put(&o, &(struct k_do){.json = {json->data, json->len}, .file = fd});
    uint64_t began = thread_cpu_ns(); /* SECURITY: a kernel may have many wait for it */
    chan_send(k->process.ctl, &o);
    pace_served(k->live, thread_cpu_ns() - began);
    memory_wake(k->live->engine);
}

static void tell_all(struct kernel *k) {
    while (k->telling && k->telling->is_ready) {
        struct telling *t = LIST_POP(&k->telling, next);
        if (t->fd >= 0) {
            tell(k, &t->head, lent_add(k, &t->fd, t->len, t->is_answer));
        } else if (t->head.len > 0) {
            tell(k, &t->head, -1);
        } else {
            log_error("kernel message error=%s", log_text(t->why.text));
            kernel_kill(k);
        }
        telling_free(t);
    }
}

static void telling_done(struct work *w) {
    struct telling *t = w->arg;
    t->is_ready = true;
    if (t->kernel)
        tell_all(t->kernel);
    else
        telling_free(t);
}

void kernel_untell(struct kernel *k) {
    while (k->telling) {
        struct telling *t = LIST_POP(&k->telling, next);
        t->kernel = NULL;
        if (t->is_ready)
            telling_free(t);
    }
}

size_t kernel_telling_bytes(const struct live *l) {
    size_t sum = 0;
    for (const struct kernel *k = l->kernels; k; k = k->next) {
        for (const struct telling *t = k->telling; t; t = t->next)
            sum += t->head.len + t->len;
    }
    return sum;
}

static void enqueue(struct kernel *k, const struct telling *what) {
    struct telling *t = xmalloc(sizeof *t);
    *t = *what;
    t->kernel = k;
    LIST_APPEND(&k->telling, t, next);
    if (t->is_ready)
        return;
    t->work = (struct work){.slice = telling_slice,
                            .done = telling_done,
                            .arg = t,
                            .owner = crew_owner(k->live->req.tenant),
                            .is_long = t->len + t->head.len > CREW_LONG};
    crew_add(k->live->engine->crew, &t->work);
}

void kernel_do(struct kernel *k, const struct buf *json) {
    if (!k->telling && json->len <= INLINE_MAX) {
        tell(k, json, -1);
        return;
    }
    struct telling t = {
        .is_ready = json->len <= INLINE_MAX, .head = BUF_INIT, .tail = BUF_INIT, .fd = -1};
    buf_add(&t.head, json->data, json->len);
    enqueue(k, &t);
}

void kernel_do_text(struct kernel *k, struct buf *head, const struct kernel_text *text,
                    struct buf *tail) {
    if (text->len <= INLINE_MAX / 8) { /* the longest that escaping makes it */
        struct jw j = JW_INIT(head);
        jw_strn(&j, json_string_value(text->of) + text->from, text->len);
        buf_add(head, tail->data, tail->len);
        kernel_do(k, head);
        return;
    }
    enqueue(k, &(struct telling){.head = *head,
                                 .tail = *tail,
                                 .text = json_incref(text->of),
                                 .from = text->from,
                                 .len = text->len,
                                 .is_answer = text->is_answer,
                                 .fd = -1});
    *head = *tail = (struct buf)BUF_INIT;
}

/* SECURITY: whoever wants answers reads them: they would pile up here. (Questions that wait for the
 * end of a cell are none, and have a limit of their own.) */
bool kernel_may_answer(struct kernel *k) {
    if (k->process.ctl->queued == 0 && !k->telling)
        k->unread = 0;
    if (++k->unread <= MAX_UNREAD)
        return true;
    kernel_give_up(k, "it does not listen to cloche");
    return false;
}

/* ---- from it ---- */

static const char no_kernel_says[] = "it said something to cloche that no kernel says";

static void let_go_on(struct kernel *k, json_int_t number) {
    AUTO_BUF json = BUF_INIT;
    said_go(number, &json);
    if (kernel_may_answer(k))
        kernel_do(k, &json);
}

static void heard(struct kernel *k, struct said *s) {
    const json_t *go = json_object_get(s->rest, "go");
    const char *kind = said_str(s, "ev"), *id = said_str(s, "id");
    if (kind && strcmp(kind, "reply") == 0) {
        kernel_replied(k, s);
        lent_back(k);
    } else if (kind && id && k->running && strcmp(id, k->running->id) == 0) {
        cell_event(k->running, kind, s);
    }
    if (json_is_integer(go))
        let_go_on(k, json_integer_value(go));
}

/* A message that is being read beside the loop. */
struct hearing {
    struct said_long what; /* the first member */
    struct hearing *next;  /* of the same sandbox */
    struct live *live;     /* borrowed: pays; NULL when the sandbox has ended */
    struct kernel *kernel; /* borrowed; NULL when nobody listens any more */
};

/* Takes `s`. */
static void hear(struct kernel *k, struct said *s) {
    kernel_catch_up(k); /* what the kernel printed before it spoke */
    if (k->state != KERNEL_ENDING && !k->forgotten)
        heard(k, s);
    said_done(s);
}

static void hear_read(struct kernel *k, struct hearing *h) {
    said_long_leave(&h->what, k->process.ctl);
    if (h->what.is_bad)
        kernel_give_up(k, no_kernel_says);
    else
        hear(k, &h->what.said);
}

static void hearing_done(struct said_long *what) {
    struct hearing *h = (struct hearing *)what;
    struct kernel *k = h->kernel;
    uint64_t began = thread_cpu_ns();
    if (h->live)
        LIST_REMOVE(&h->live->hearings, h, next);
    if (k)
        hear_read(k, h);
    if (h->live) { /* the message may have ended it; its memory stays for this turn */
        pace_heard(h->live, k ? &k->process : NULL, what->cpu_ns + thread_cpu_ns() - began);
        pace_go_on(h->live);
        processes_end_exited(h->live);
    }
    said_long_end(what);
    free(h);
}

bool kernel_is_heard(void *owner) {
    const struct kernel *k = owner;
    const struct hearing *h = k->live->hearings;
    while (h && h->kernel != k)
        h = h->next;
    return h;
}

/* SECURITY: no message may reach the kernel's next process, or a kernel that is gone. */
void kernel_unhear(struct kernel *k) {
    for (struct hearing *h = k->live->hearings; h; h = h->next) {
        if (h->kernel == k)
            h->kernel = NULL;
    }
}

void kernel_unhear_all(struct live *l) {
    for (; l->hearings; l->hearings = l->hearings->next) {
        l->hearings->live = NULL;
        l->hearings->kernel = NULL;
    }
}

/* We hear the last words of a process that has ended, but wait for none: a forked child may hold
 * its socket and go on. */
static void hear_long(struct kernel *k, struct wire_in *in, const struct k_say *m) {
    struct live *l = k->live;
    if (k->process.has_exited)
        return;
    struct hearing *h = xcalloc(1, sizeof *h);
    *h = (struct hearing){.what = {.crew = l->engine->crew, .done = hearing_done},
                          .next = l->hearings,
                          .live = l,
                          .kernel = k};
    l->hearings = h;
    pace_hold(l);
    said_long_begin(&h->what, crew_owner(l->req.tenant), in, m);
}

void kernel_on_frame(void *owner, struct wire_in *in) {
    struct kernel *k = owner;
    struct said s;
    struct k_say m;
    if (k->state == KERNEL_ENDING)
        return;
    uint64_t began = thread_cpu_ns();
    enum said_how how = said_get(in, &m, &s);
    if (how == SAID_LONG)
        hear_long(k, in, &m);
    else if (how == SAID_BAD)
        kernel_give_up(k, no_kernel_says);
    else
        hear(k, &s);
    pace_heard(k->live, &k->process, thread_cpu_ns() - began);
}
