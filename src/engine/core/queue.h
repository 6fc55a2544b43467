#pragma once
/* Who waits, and whose turn it is: first come, first served among the programs of one tenant, and
 * the tenants take turns. So one who queues five hundred delays another's single program by one.
 * Knows nothing of programs; items are embedded in their owners. */

struct queue_lane;

struct queue_item {
    struct queue_item *prev, *next;
    struct queue_lane *lane; /* borrowed; NULL when it does not wait */
    void *owner;
};

struct queue {
    struct queue_lane *turn; /* the tenant whose turn it is; the others follow in a ring */
    unsigned n;              /* all that wait */
    unsigned tenants;        /* that have one of these */
};

void queue_add(struct queue *q, struct queue_item *i, const char *tenant);
void queue_remove(struct queue *q, struct queue_item *i);
/* The one whose turn it is, or NULL. */
struct queue_item *queue_first(const struct queue *q);
/* Takes that one out, and the next tenant's turn comes. The queue is not empty. */
struct queue_item *queue_take(struct queue *q);

/* The tenant whose turn it is waits for another round. */
void queue_pass(struct queue *q);

/* A full queue, and `tenant` has one more: who gives way to it? The newest of the tenant that has
 * the most, if it has more than the newcomer's will have then; else NULL. So a tenant may fill the
 * queue while it is alone, and when others come they share it evenly. */
struct queue_item *queue_surplus(const struct queue *q, const char *tenant);
