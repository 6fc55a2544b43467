/* A packed configuration: refused, or all of it in bounds and the same bytes when packed again.
 *
 * The input is read as it is, and as changes to a configuration that is good: three bytes say where
 * and what. So the corpus is of use whatever settings there are. */

#include "config/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void try_bytes(const void *data, size_t size) {
    struct config c;
    struct err e;
    if (config_decode(data, size, &c, &e) < 0) {
        must(c.nprofiles == 0 && c.socket == NULL);
        return;
    }
    must(c.nprofiles <= CONFIG_MAX_PROFILES);
    for (unsigned i = 0; i < c.nprofiles; i++)
        must((c.profiles[i].live || config_name_is_good(c.profiles[i].name)) &&
             config_twin(&c, i) != i && c.profiles[i].preload.n <= CONFIG_MAX_LIST);
    AUTO_BUF again = BUF_INIT;
    config_encode(&c, &again);
    must(again.len == size && memcmp(again.data, data, size) == 0);
    config_done(&c);
}

static void good_one(struct buf *to) {
    static char *const modules[] = {(char *)"json", (char *)"numpy"};
    const struct config c = {
        .socket = (char *)"/s",
        .libexec = (char *)"/l",
        .minimum = (char *)"strict",
        .nprofiles = 2,
        .profiles = {{.name = (char *)"base",
                      .python = (char *)"/p",
                      .preload = {(char **)modules, 2},
                      .pool = 4},
                     {.name = (char *)"base+live", .python = (char *)"/p", .live = 1}},
    };
    config_encode(&c, to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF b = BUF_INIT;
    try_bytes(data, size);
    good_one(&b);
    try_bytes(b.data, b.len);
    for (size_t i = 0; i + 3 <= size; i += 3)
        b.data[((size_t)data[i] << 8 | data[i + 1]) % b.len] = (char)data[i + 2];
    try_bytes(b.data, b.len - (size % 3)); /* or cut */
    return 0;
}
