/* See inbox.h. */

#include "api/core/inbox.h"

#include "http/ws.h"
#include "loop/crew.h"

#include <stdlib.h>

#define LARGE (32u << 10)

struct mail {
    struct mail *next;
    struct work work;
    struct inbox *box; /* borrowed; NULL when nobody takes it */
    struct buf data;
    struct http_count count; /* it may outlive its socket */
    bool binary, is_read;
    void *(*read)(const void *data, size_t len, bool binary);
    void (*drop)(void *message);
    void *message;
};

static void mail_free(struct mail *m) {
    if (m->message)
        m->drop(m->message);
    buf_done(&m->data);
    http_uncount(&m->count);
    free(m);
}

static bool mail_slice(struct work *w) {
    struct mail *m = w->arg;
    m->message = m->read(m->data.data, m->data.len, m->binary);
    return false;
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
        mail_free(m);
    }
    heed(b);
}

static void mail_done(struct work *w) {
    struct mail *m = w->arg;
    m->is_read = true;
    if (m->box)
        take_all(m->box);
    else
        mail_free(m);
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
            mail_free(m);
    }
}
