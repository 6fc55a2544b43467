/* Processor time of a live sandbox outside of its executions (commands, what a cell left running),
 * for whoever pays for the sandbox. An execution's own is told with its result; while one runs, the
 * two cannot be told apart, and what it does not account for is told afterwards. */

#include "engine/live/cpu_account.h"

#include "engine/kernel/kernel.h"
#include "engine/live/lives.h"
#include "engine/process/live_state.h"
#include "engine/process/pace.h"

#define ACCOUNT_MS 2000

static bool is_executing(const struct live *l) {
    for (const struct kernel *k = l->kernels; k; k = k->next) {
        if (k->running)
            return true;
    }
    return false;
}

static void account_now(struct live *l) {
    struct lives *lives = l->engine->lives;
    if (!l->sandbox || !l->req.payer || !lives->on_cpu_account)
        return;
    uint64_t all = pace_cpu_us(l);
    if (all <= l->cpu_told_us)
        return;
    lives->on_cpu_account(lives->cpu_account_arg, l->req.payer,
                          (double)(all - l->cpu_told_us) / 1e6);
    l->cpu_told_us = all;
}

static void cpu_account_on_timer(struct timer *t) {
    struct live *l = t->arg;
    if (!is_executing(l))
        account_now(l);
    loop_timer_in_ms(l->engine->loop, t, ACCOUNT_MS);
}

void cpu_account_begin(struct live *l) {
    l->account_timer = (struct timer){.fn = cpu_account_on_timer, .arg = l};
    l->cpu_told_us = pace_cpu_us(l);
    if (l->req.payer)
        loop_timer_in_ms(l->engine->loop, &l->account_timer, ACCOUNT_MS);
}

void cpu_account_end(struct live *l) {
    loop_timer_stop(l->engine->loop, &l->account_timer);
    account_now(l);
}
