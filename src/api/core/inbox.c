/* See inbox.h. */

#include "api/core/inbox.h"

#include "base/clock.h"
#include "http/ws.h"
#include "loop/crew.h"

#include <stdlib.h>

#define LARGE 4096 /* bytes; JSON of so many may hold the loop up for 0.2 ms */

struct mail {
    struct mail *next;
    struct work work;
    struct inbox *box; /* borrowed; NULL when nobody takes it */
    struct crew *crew; /* borrowed */
    struct buf data;
    struct http_count count;       /* it may outlive its socket */
    bool binary, is_read, is_over; /* taken, or nobody takes it */
    uint64_t cpu_ns;               /* spent on reading it */
    void *(*read)(const void *data, size_t len, bool binary);
    void (*drop)(void *message);
    void *message;
};

/* Beside the loop: to free what was made of a message takes as long as to make it. */
static void mail_empty(struct mail *m) {
    if (m->message)
        m->drop(m->message);
    m->message = NULL;
    buf_done(&m->data);
    m->data = (struct buf)BUF_INIT;
}

static bool mail_slice(struct work *w) {
    struct mail *m = w->arg;
    uint64_t began = thread_cpu_ns();
    if (m->is_over)
        mail_empty(m);
    else
        m->message = m->read(m->data.data, m->data.len, m->binary);
    m->cpu_ns = thread_cpu_ns() - began;
    return false;
}

static void mail_end(struct mail *m) {
    m->is_over = true;
    crew_add(m->crew, &m->work);
}

/* While one is being read, nothing more is taken from the socket. */
static void heed(struct inbox *b) {
    ws_hold(b->ws, b->first || b->is_held);
}

/* Taking a message may end the inbox: then nothing is left to take. */
static void take_all(struct inbox *b) {
    while (b->first && b->first->is_read) {
        struct mail *m = b->first;
        b->first = m->next;
        b->take(b->arg, m->message);
        mail_end(m);
    }
    heed(b);
}

static void mail_done(struct work *w) {
    struct mail *m = w->arg;
    struct inbox *b = m->box;
    if (m->is_over) {
        http_uncount(&m->count);
        free(m);
        return;
    }
    m->is_read = true;
    if (!b) {
        mail_end(m);
        return;
    }
    if (b->on_cost)
        b->on_cost(b->arg, m->cpu_ns);
    take_all(b);
}

void inbox_add(struct inbox *b, const void *data, size_t len, bool binary) {
    if (!b->first && len <= LARGE) {
        void *message = b->read(data, len, binary);
        b->take(b->arg, message);
        b->drop(message);
        return;
    }
    struct mail *m = xmalloc(sizeof *m), **end = &b->first;
    *m = (struct mail){.box = b,
                       .crew = b->crew,
                       .count = ws_move_count(b->ws),
                       .binary = binary,
                       .read = b->read,
                       .drop = b->drop,
                       .work = {.slice = mail_slice,
                                .done = mail_done,
                                .arg = m,
                                .owner = b->owner,
                                .is_long = len > CREW_LONG}};
    m->data = (struct buf)BUF_INIT;
    buf_add(&m->data, data, len);
    while (*end)
        end = &(*end)->next;
    *end = m;
    heed(b);
    crew_add(b->crew, &m->work);
}

void inbox_hold(struct inbox *b, bool hold) {
    b->is_held = hold;
    heed(b);
}

void inbox_done(struct inbox *b) {
    while (b->first) {
        struct mail *m = b->first;
        b->first = m->next;
        m->box = NULL;
        if (m->is_read)
            mail_end(m);
    }
}
