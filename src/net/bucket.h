#pragma once
/* Rates: a bucket of tokens, and different destinations in a minute. */

#include "net/addr.h"
#include "net/bounds.h"

struct net_bucket {
    uint32_t per_second, burst;
    uint64_t spent_milli; /* thousandths of tokens that are not there */
    uint64_t at_ms;
};

#define NET_BUCKET(rate, most)                                                                     \
    { .per_second = (rate), .burst = (most) }

/* Whether there was a token, which is taken. */
bool net_bucket_take(struct net_bucket *b, uint64_t now_ms);
/* Whether none is missing: it says no more than a new one. */
bool net_bucket_is_full(const struct net_bucket *b, uint64_t now_ms);

/* Destinations of the last minute; all zero is empty. */
#define NET_SEEN_SLOTS NET_DESTINATIONS
struct net_seen {
    struct {
        uint64_t until_ms; /* 0: nothing here */
        uint64_t hash;
    } slots[NET_SEEN_SLOTS];
    uint64_t key; /* made at the first use, so that nobody outside can choose what is the same */
};

/* False: it is new, and NET_DESTINATIONS others were there in this minute already. */
bool net_seen_add(struct net_seen *s, const struct net_addr *a, uint16_t port, uint64_t now_ms);
