/* See expire.h. */

#include "engine/store/expire.h"

#define SWEEP_MAX 32u /* files removed per wake-up */
#define TIMER_MAX 86400.0

bool expire_is_old(const struct store *s, const struct store_entry *e, double now) {
    return s->options.ttl_s && e->uploaded + (double)s->options.ttl_s <= now;
}

unsigned expire_sweep(struct store *s) {
    double now = store_now();
    unsigned n = 0;
    while (n < SWEEP_MAX && s->index.oldest && expire_is_old(s, &s->index.oldest->entry, now)) {
        store_remove(s, s->index.oldest);
        n++;
    }
    return n;
}

/* The timer runs on the monotonic clock and files age on the real one: it fires once a day at
 * least, to follow a clock that was set. */
void expire_set_timer(struct store *s) {
    if (!s->options.ttl_s || !s->index.oldest || s->sweeper.place)
        return;
    double left = s->index.oldest->entry.uploaded + (double)s->options.ttl_s - store_now();
    left = left < 0 ? 0 : left > TIMER_MAX ? TIMER_MAX : left;
    /* a millisecond more: neither just too early nor twice in one round of the loop */
    loop_timer_in_ms(s->loop, &s->sweeper, (uint64_t)(left * 1e3) + 1);
}

void expire_on_timer(struct timer *t) {
    struct store *s = t->arg;
    expire_sweep(s);
    expire_set_timer(s);
}
