/* A packed configuration: refused, or all of it in bounds and the same bytes when packed again. */

#include "config/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct config c;
    struct err e;
    if (config_decode(data, size, &c, &e) < 0) {
        must(c.nprofiles == 0 && c.socket == NULL);
        return 0;
    }
    must(c.nprofiles <= CONFIG_MAX_PROFILES);
    for (unsigned i = 0; i < c.nprofiles; i++)
        must((c.profiles[i].live || config_name_is_good(c.profiles[i].name)) &&
             config_twin(&c, i) != i && c.profiles[i].preload.n <= CONFIG_MAX_LIST);
    AUTO_BUF again = BUF_INIT;
    config_encode(&c, &again);
    must(again.len == size && memcmp(again.data, data, size) == 0);
    config_done(&c);
    return 0;
}
