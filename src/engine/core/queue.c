/* See queue.h. A lane per tenant that has something waiting, in a ring; a lane that becomes empty
 * is freed. Taking and removing cost the same however many wait; adding looks for the tenant's lane
 * among those that wait, which are no more than there are keys. */

#include "engine/core/queue.h"

#include "base/buf.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct queue_lane {
    struct queue_lane *prev, *next; /* the ring */
    struct queue_item *first, *last;
    unsigned n;
    char tenant[];
};

static struct queue_lane *find_lane(const struct queue *q, const char *tenant) {
    struct queue_lane *l = q->turn;
    if (!l)
        return NULL;
    do {
        if (strcmp(l->tenant, tenant) == 0)
            return l;
        l = l->next;
    } while (l != q->turn);
    return NULL;
}

/* At the end of the round. */
static struct queue_lane *open_lane(struct queue *q, const char *tenant) {
    size_t len = strlen(tenant) + 1;
    struct queue_lane *l = xcalloc(1, sizeof *l + len);
    memcpy(l->tenant, tenant, len);
    l->prev = l->next = l;
    q->tenants++;
    if (q->turn) {
        l->next = q->turn;
        l->prev = q->turn->prev;
        l->prev->next = l->next->prev = l;
    } else {
        q->turn = l;
    }
    return l;
}

static void close_lane(struct queue *q, struct queue_lane *l) {
    if (q->turn == l)
        q->turn = l->next == l ? NULL : l->next;
    q->tenants--;
    l->prev->next = l->next;
    l->next->prev = l->prev;
    free(l);
}

void queue_add(struct queue *q, struct queue_item *i, const char *tenant) {
    struct queue_lane *l = find_lane(q, tenant);
    if (!l)
        l = open_lane(q, tenant);
    i->lane = l;
    i->next = NULL;
    i->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = i;
    l->last = i;
    l->n++;
    q->n++;
}

void queue_remove(struct queue *q, struct queue_item *i) {
    struct queue_lane *l = i->lane;
    *(i->prev ? &i->prev->next : &l->first) = i->next;
    *(i->next ? &i->next->prev : &l->last) = i->prev;
    i->prev = i->next = NULL;
    i->lane = NULL;
    l->n--;
    q->n--;
    if (l->n == 0)
        close_lane(q, l);
}

struct queue_item *queue_first(const struct queue *q) {
    return q->turn ? q->turn->first : NULL;
}

struct queue_item *queue_take(struct queue *q) {
    struct queue_item *i = q->turn->first;
    q->turn = q->turn->next;
    queue_remove(q, i);
    return i;
}

void queue_pass(struct queue *q) {
    if (q->turn)
        q->turn = q->turn->next;
}

struct queue_item *queue_surplus(const struct queue *q, const char *tenant) {
    const struct queue_lane *own = find_lane(q, tenant), *most = q->turn;
    if (!most)
        return NULL;
    for (const struct queue_lane *l = q->turn->next; l != q->turn; l = l->next) {
        if (l->n > most->n)
            most = l;
    }
    return most->n > (own ? own->n : 0) + 1 ? most->last : NULL;
}
