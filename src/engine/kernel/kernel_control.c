/* What others do to a kernel: make one more, interrupt, restart and delete it, answer its input().
 */

#include "engine/kernel/kernel_control.h"

#include "base/json.h"
#include "base/list.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_queue.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/kernel/lent.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>

#define MAX_KERNELS 64

/* Somebody wants the process gone. */
static void kill_for_client(struct kernel *k) {
    if (k->running && k->running->stop == STOP_NONE)
        k->running->stop = STOP_KERNEL;
    kernel_kill(k);
}

int kernel_new(struct live *l, const struct kernel_request *q, kernel_ready_fn *fn, void *arg,
               struct err *e) {
    struct limits limits;
    unsigned n = 0;
    if (group_settle(l, q->limits, &limits, e) < 0)
        return -1;
    for (const struct kernel *k = l->kernels; k; k = k->next)
        n++;
    if (n >= MAX_KERNELS)
        return err_user(e, "limit_too_high", "a sandbox has at most %d kernels", MAX_KERNELS);
    struct kernel *k = xcalloc(1, sizeof *k);
    kernel_init(k, l);
    k->process.limits = limits;
    k->env = q->env ? xstrdup(q->env) : NULL;
    k->cwd = q->cwd ? xstrdup(q->cwd) : NULL;
    k->waits = xcalloc(1, sizeof *k->waits);
    *k->waits = (struct kernel_wait){.fn = fn, .arg = arg};
    kernel_start(k);
    return 0;
}

int kernel_delete(struct kernel *k, struct err *e) {
    if (k->is_default)
        return err_user(e, "is_default", "the default kernel stays as long as its sandbox");
    err_user(e, "no_such_kernel", "the kernel was deleted");
    k->deleted = true;
    kernel_fail_queue(k, e);
    live_changed(k->live);
    if (k->process.state == PROCESS_NONE)
        kernel_forget(k, e);
    else
        kill_for_client(k);
    return 0;
}

/* The signal has arrived: what it did to the kernel must not hit the next cell. */
static void kernel_on_signalled(void *arg, struct wire_in *in) {
    struct kernel *k = arg;
    struct err e;
    (void)in;
    if (k->running || k->state != KERNEL_BUSY)
        return;
    if (kernel_query(k, "sync", "", kernel_on_calm, k, &e) < 0)
        kernel_on_calm(k, NULL, 0, NULL);
}

/* No cell runs: it is for a task that one has left, if that runs just now. */
static void interrupt_tasks(struct kernel *k) {
    struct wire_out o;
    if (k->state != KERNEL_IDLE || k->live->paused)
        return;
    process_signal_message(&k->process, SIGINT, SIGNAL_PROCESS, &o);
    if (live_ask(k->live, &o, kernel_on_signalled, k))
        kernel_move(k, KERNEL_BUSY);
}

bool kernel_interrupt(struct kernel *k) {
    if (!k->running) {
        interrupt_tasks(k);
        return false;
    }
    if (cell_is_over(k->running))
        return false;
    cell_stop(k->running, STOP_CLIENT);
    return true;
}

void kernel_restart(struct kernel *k, kernel_ready_fn *fn, void *arg) {
    struct err e;
    struct kernel_wait *w = xcalloc(1, sizeof *w);
    *w = (struct kernel_wait){.fn = fn, .arg = arg};
    LIST_PUSH(&k->waits, w, next);
    err_user(&e, "interrupted", "the kernel was restarted before it began");
    kernel_fail_queue(k, &e);
    if (k->process.state == PROCESS_NONE) {
        loop_timer_stop(k->live->engine->loop, &k->retry);
        kernel_start(k);
    } else if (k->state != KERNEL_STARTING) {
        kill_for_client(k);
    }
}

void kernel_unwait(struct live *l, const void *arg) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        for (struct kernel_wait **at = &k->waits; *at;) {
            if ((*at)->arg == arg)
                free(LIST_POP(at, next));
            else
                at = &(*at)->next;
        }
    }
}

int kernel_input(struct kernel *k, const struct kernel_text *text, struct err *e) {
    struct cell *c = k->running;
    if (!c || !c->waits_for_input)
        return err_user(e, "not_waiting", "no input() waits in this kernel");
    if (text && !c->req.stdin_text && lent_fits(k, text->len, e) < 0)
        return -1;
    AUTO_BUF head = BUF_INIT;
    AUTO_BUF tail = BUF_INIT;
    c->waits_for_input = false;
    live_changed_lately(k->live);
    if (!kernel_may_answer(k))
        return 0;
    struct jw j = JW_INIT(&head);
    jw_object(&j);
    jw_key_str(&j, "op", "input");
    jw_key_str(&j, "id", c->id);
    if (!text) {
        jw_key_bool(&j, "eof", true);
        jw_object_end(&j);
        kernel_do(k, &head);
        return 0;
    }
    jw_key(&j, "value");
    j = (struct jw)JW_INIT(&tail);
    jw_object_end(&j);
    kernel_do_text(k, &head, text, &tail);
    return 0;
}

int kernel_stdin(struct kernel *k, struct json_t *value, struct err *e) {
    json_auto_t *line = json_is_string(value) ? json_incref(value) : json_string("");
    const struct kernel_text text = {line, 0, json_string_length(line), .is_answer = true};
    return kernel_input(k, &text, e);
}

int kernel_no_stdin(struct kernel *k, struct err *e) {
    return kernel_input(k, NULL, e);
}
