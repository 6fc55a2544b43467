/* See notes.h. What was told is remembered by its hash, in a slot that the hash chooses: a target
 * that loses its slot to another is told again. The hash has a key of its own for each sandbox, so
 * that nobody can choose targets that hide each other. */

#include "gate/notes.h"

#include "base/clock.h"
#include "gate/gate.h"

#include <string.h>
#include <sys/random.h>

#define USES_PER_SECOND     20
#define USES_BURST          200
#define REFUSALS_PER_SECOND 20
#define REFUSALS_BURST      100
#define AGAIN_MS            1000

void notes_init(struct notes *n) {
    *n = (struct notes){.uses = NET_BUCKET(USES_PER_SECOND, USES_BURST),
                        .refusals = NET_BUCKET(REFUSALS_PER_SECOND, REFUSALS_BURST)};
    (void)!getrandom(&n->key, sizeof n->key, 0); /* without it there is just less of a secret */
}

static uint64_t hash_add(uint64_t h, const char *text) {
    for (; *text; text++) {
        h = (h ^ (uint8_t)*text) * 0x9fb21c651e98df25ull;
        h ^= h >> 32;
    }
    return h * 0x9fb21c651e98df25ull;
}

bool notes_is_due(struct notes *s, const struct note *n, uint64_t now_ms) {
    uint64_t h = hash_add(hash_add(s->key + n->refused, n->target), n->rule);
    size_t slot = (h >> 40) % NOTES_REMEMBERED;
    bool known = s->told[slot].hash == h;
    if (known && (!n->refused || now_ms - s->told[slot].at_ms < AGAIN_MS))
        return false;
    if (!net_bucket_take(n->refused ? &s->refusals : &s->uses, now_ms))
        return false;
    s->told[slot].hash = h;
    s->told[slot].at_ms = now_ms;
    return true;
}

void note_tell(struct attachment *a, const struct note *n) {
    if (!notes_is_due(&a->notes, n, now_ms()))
        return;
    struct wire_out o;
    g_note_put(&o, &(struct g_note){.sandbox = a->sandbox,
                                    .process = n->process,
                                    .refused = n->refused,
                                    .target = n->target,
                                    .rule = n->rule});
    gate_tell_server(a->gate, &o);
}
