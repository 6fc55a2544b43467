/* See traffic.h. A record: four u64, u32 length, and that many bytes, of which only the last is
 * NUL. */

#include "wire/traffic.h"

#include "wire/messages.h"

#include <string.h>

void traffic_put(struct buf *to, const struct traffic *t) {
    const uint64_t numbers[] = {t->connections, t->refused, t->bytes_out, t->bytes_in};
    uint32_t len = (uint32_t)strlen(t->rule) + 1;
    buf_add(to, numbers, sizeof numbers);
    buf_add(to, &len, sizeof len);
    buf_add(to, t->rule, len);
}

bool traffic_get(const uint8_t **at, const uint8_t *end, struct traffic *ret) {
    uint64_t numbers[4];
    uint32_t len;
    const size_t head = sizeof numbers + sizeof len;
    if ((size_t)(end - *at) < head)
        return false;
    memcpy(numbers, *at, sizeof numbers);
    memcpy(&len, *at + sizeof numbers, sizeof len);
    const uint8_t *text = *at + head;
    if (len == 0 || len > WIRE_RULE + 1 || len > (size_t)(end - text) ||
        memchr(text, '\0', len) != text + len - 1)
        return false;
    *ret = (struct traffic){.rule = (const char *)text,
                            .connections = numbers[0],
                            .refused = numbers[1],
                            .bytes_out = numbers[2],
                            .bytes_in = numbers[3]};
    *at = text + len;
    return true;
}
