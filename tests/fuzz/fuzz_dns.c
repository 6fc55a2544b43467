/* Any bytes as a question for a name: dropped, or answered within the bounds of a packet. */

#include "net/dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct net_question q, again;
    struct net_addr a[NET_ADDRESSES];
    if (!net_dns_read(data, size, &q))
        return 0;
    must(q.len > 0 && q.wire[q.len - 1] == 0 && strlen(q.name) < NET_NAME_SIZE);
    for (size_t i = 0; i < NET_ADDRESSES; i++) {
        static const uint8_t four[] = {198, 51, 100, 7};
        a[i] = net_addr_of_v4(four);
        a[i].b[0] = i % 2 == 0 ? 0x20 : 0; /* every other one of IPv6 */
    }
    for (size_t most = 300; most <= 2048; most += 437) {
        uint8_t *to = malloc(most);
        size_t n = net_dns_reply(&q, NET_RCODE_OK, 300, a, NET_ADDRESSES, to, most);
        must(n <= most && n >= 12 + q.len + 4u);
        /* Our reply is no question, but its question is the one that was asked. */
        must(!net_dns_read(to, n, &again));
        to[2] &= 0x01, to[3] = 0;
        memset(to + 6, 0, 6);
        must(net_dns_read(to, n, &again));
        must(again.type == q.type && again.id == q.id && strcmp(again.name, q.name) == 0);
        free(to);
    }
    return 0;
}
