/* See bucket.h. */

#include "net/bucket.h"

#include <string.h>
#include <sys/random.h>

static uint64_t spent_by_now(const struct net_bucket *b, uint64_t now_ms) {
    uint64_t passed_ms = now_ms > b->at_ms ? now_ms - b->at_ms : 0;
    uint64_t most_milli = (uint64_t)b->burst * 1000;
    /* So long a time fills any bucket; longer ones could overflow. */
    uint64_t back = passed_ms > most_milli ? most_milli : passed_ms * b->per_second;
    return b->spent_milli > back ? b->spent_milli - back : 0;
}

bool net_bucket_is_full(const struct net_bucket *b, uint64_t now_ms) {
    return spent_by_now(b, now_ms) == 0;
}

bool net_bucket_take(struct net_bucket *b, uint64_t now_ms) {
    uint64_t most_milli = (uint64_t)b->burst * 1000;
    b->spent_milli = spent_by_now(b, now_ms);
    b->at_ms = now_ms;
    if (b->spent_milli + 1000 > most_milli)
        return false;
    b->spent_milli += 1000;
    return true;
}

static uint64_t seen_mix(uint64_t h, uint64_t with) {
    h = (h ^ with) * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 29);
}

static uint64_t seen_hash(struct net_seen *s, const struct net_addr *a, uint16_t port) {
    while (s->key == 0)
        if (getrandom(&s->key, sizeof s->key, GRND_NONBLOCK) < 0)
            s->key = (uint64_t)(uintptr_t)s | 1;
    uint64_t parts[2];
    memcpy(parts, a->b, sizeof parts);
    uint64_t h = seen_mix(seen_mix(seen_mix(s->key, parts[0]), parts[1]), port);
    return h == 0 ? 1 : h;
}

#define SEEN_MS 60000

bool net_seen_add(struct net_seen *s, const struct net_addr *a, uint16_t port, uint64_t now_ms) {
    uint64_t hash = seen_hash(s, a, port);
    size_t live = 0, empty = NET_SEEN_SLOTS;
    for (size_t i = 0; i < NET_SEEN_SLOTS; i++) {
        bool is_live = s->slots[i].until_ms > now_ms;
        if (is_live && s->slots[i].hash == hash) {
            s->slots[i].until_ms = now_ms + SEEN_MS;
            return true;
        }
        live += is_live;
        if (!is_live)
            empty = i;
    }
    if (live >= NET_DESTINATIONS)
        return false;
    s->slots[empty].hash = hash;
    s->slots[empty].until_ms = now_ms + SEEN_MS;
    return true;
}
