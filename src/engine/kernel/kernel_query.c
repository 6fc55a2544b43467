/* Questions to a kernel: what is asked of its cell beside executions (names, completions, whether
 * it is there), and answered while no cell runs. */

#include "engine/kernel/kernel_query.h"

#include "base/json.h"
#include "base/list.h"
#include "engine/core/budget.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/process/live_state.h"
#include "engine/said/said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_MS    10000
#define MAX_QUERIES 64

static void free_query(struct kernel_query *q) {
    loop_timer_stop(q->kernel->live->engine->loop, &q->late);
    free(q);
}

void kernel_replied(struct kernel *k, struct said *s) {
    const char *id = said_str(s, "id");
    uint64_t number = id ? strtoull(id, NULL, 10) : 0;
    for (struct kernel_query **at = &k->queries; *at; at = &(*at)->next) {
        struct kernel_query *q = *at;
        if (q->id != number)
            continue;
        *at = q->next;
        kernel_reply_fn *fn = q->fn;
        void *arg = q->arg;
        free_query(q);
        if (!fn)
            return;
        struct err e;
        if (said_true(s, "ok")) {
            fn(arg, s->text.data, s->text.len, NULL);
        } else {
            const char *why = said_str(s, "error");
            err_user(&e, "kernel_failed", "%.300s", why ? why : "the kernel did not say why");
            fn(arg, NULL, 0, &e);
        }
        return;
    }
}

void kernel_fail_queries(struct kernel *k, const struct err *why) {
    while (k->queries) {
        struct kernel_query *q = LIST_POP(&k->queries, next);
        kernel_reply_fn *fn = q->fn;
        void *arg = q->arg;
        free_query(q);
        if (fn)
            fn(arg, NULL, 0, why);
    }
}

static void query_on_late(struct timer *t) {
    struct kernel_query *q = t->arg;
    kernel_reply_fn *fn = q->fn;
    struct err e;
    q->fn = NULL; /* its place stays until the kernel answers */
    err_user(&e, "kernel_busy", "the kernel did not answer within %d s: it runs a cell",
             QUERY_MS / 1000);
    if (fn)
        fn(q->arg, NULL, 0, &e);
}

int kernel_query(struct kernel *k, const char *op, const char *members, kernel_reply_fn *fn,
                 void *arg, struct err *e) {
    unsigned n = 0;
    for (const struct kernel_query *q = k->queries; q; q = q->next)
        n++;
    if (n >= MAX_QUERIES || k->process.state != PROCESS_READY || k->state == KERNEL_ENDING)
        return err_user(e, "kernel_busy", "the kernel %s; ask again later",
                        n >= MAX_QUERIES ? "has too many questions to answer" : "is starting");
    size_t len = strlen(members);
    if (len > WIRE_MAX && budget_fits(k->live->engine, len, e) < 0)
        return -1;
    struct kernel_query *q = xcalloc(1, sizeof *q);
    *q = (struct kernel_query){.kernel = k, .id = ++k->last_query, .fn = fn, .arg = arg};
    q->late = (struct timer){.fn = query_on_late, .arg = q};
    loop_timer_in_ms(k->live->engine->loop, &q->late, QUERY_MS);
    LIST_PUSH(&k->queries, q, next);
    char id[24];
    snprintf(id, sizeof id, "%llu", (unsigned long long)q->id);
    if (strcmp(op, "setup") == 0) {
        kernel_set_up(k, id);
        return 0;
    }
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "op", op);
    jw_key_str(&j, "id", id);
    if (len)
        jw_raw(&j, members, len);
    jw_object_end(&j);
    kernel_do(k, &json);
    return 0;
}

void kernel_unquery(struct live *l, const void *arg) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        for (struct kernel_query *q = k->queries; q; q = q->next) {
            if (q->arg == arg)
                q->fn = NULL;
        }
    }
}
