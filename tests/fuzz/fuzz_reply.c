/* Any bytes as a name server's answer: what is taken is within its bounds. */

#include "gate/reply.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint16_t types[] = {NET_DNS_A, NET_DNS_AAAA};
    for (size_t i = 0; i < 2; i++) {
        struct reply r;
        reply_read(data, size, "pypi.org", types[i], &r);
        if (r.n > NET_ADDRESSES || r.ttl_s > NET_TTL_MAX || (r.n && r.rcode != NET_RCODE_OK))
            abort();
        for (unsigned k = 0; k < r.n; k++)
            if (types[i] == NET_DNS_A && !net_addr_is_v4(&r.at[k]))
                abort();
    }
    return 0;
}
