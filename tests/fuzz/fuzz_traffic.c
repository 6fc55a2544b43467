/* Any bytes as init's records of traffic: what is taken must be strings that end inside of them. */

#include "wire/messages.h"
#include "wire/traffic.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    struct traffic t;
    while (traffic_get(&at, end, &t)) {
        if (at > end || strlen(t.rule) > WIRE_RULE || t.rule + strlen(t.rule) >= (const char *)end)
            abort();
    }
    return 0;
}
