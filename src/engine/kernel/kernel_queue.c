/* The executions that wait for a kernel. */

#include "engine/kernel/kernel_queue.h"

#include "engine/core/budget.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/cell_end.h"
#include "engine/kernel/kernel.h"
#include "engine/process/live_state.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Of what waits in all kernels of a sandbox. SECURITY: all of them end at once, with the sandbox.
 */
#define MAX_QUEUE   256
#define QUEUE_BYTES (64u << 20)

static size_t size_of(const struct cell_request *q) {
    return json_string_length(q->code) + json_string_length(q->stdin_text) +
           (q->env ? strlen(q->env) : 0) + q->extra.len;
}

static size_t count_waiting(const struct live *l, unsigned *ret_n) {
    size_t bytes = 0;
    *ret_n = 0;
    for (const struct kernel *k = l->kernels; k; k = k->next) {
        *ret_n += k->nqueued;
        for (const struct cell *c = k->queue; c; c = c->next)
            bytes += c->size;
    }
    return bytes;
}

int cell_new(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
             struct cell **ret, struct err *e) {
    unsigned n;
    size_t size = size_of(q), waiting = count_waiting(k->live, &n);
    if (n >= MAX_QUEUE)
        return err_user(e, "queue_full", "%u executions wait already in this sandbox", n);
    /* SECURITY: who sent it need not stay, and so would not be limited by its connections. */
    if (waiting && waiting + size > QUEUE_BYTES)
        return err_user(e, "queue_full", "%zu bytes of code and input wait already in this sandbox",
                        waiting);
    if (size > WIRE_MAX && budget_fits(k->live->engine, size, e) < 0)
        return -1;
    struct cell *c = cell_make(k, q, cb, e);
    if (!c)
        return -1;
    c->size = size;
    *ret = c;
    *k->queue_end = c;
    k->queue_end = &c->next;
    k->nqueued++;
    loop_defer(k->live->engine->loop, &k->go_later);
    return 0;
}

void kernel_unqueue(struct kernel *k, struct cell *c) {
    for (struct cell **at = &k->queue; *at; at = &(*at)->next) {
        if (*at != c)
            continue;
        *at = c->next;
        if (k->queue_end == &c->next)
            k->queue_end = at;
        k->nqueued--;
        return;
    }
}

struct cell *kernel_take(struct kernel *k) {
    struct cell *c = k->queue;
    k->queue = c->next;
    if (!k->queue)
        k->queue_end = &k->queue;
    k->nqueued--;
    return c;
}

void kernel_fail_queue(struct kernel *k, const struct err *why) {
    while (k->queue)
        cell_fail(kernel_take(k), why);
}
