/* Any bytes as a file of keys: refused with the kind and a reason, or all of it in bounds, and the
 * same list when it is written and read again. */

#include "keys/keys.h"

#include "keys/keys_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_key(const struct key *k) {
    must(strlen(k->id) == 20 && strlen(k->name) <= KEYS_WORD_MAX &&
         strlen(k->tenant) <= KEYS_WORD_MAX && k->name[0] && k->tenant[0]);
    must(k->limits.requests_per_second >= 0 && k->limits.requests_per_second <= KEYS_LIMIT_MAX);
    must(k->limits.concurrent <= KEYS_LIMIT_MAX);
    must(k->limits.cpu_seconds_per_minute <= KEYS_LIMIT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_KEYS k = {0}, again = {0};
    struct err e = {0};
    if (keys_parse((const char *)data, size, &k, &e) < 0) {
        must(strcmp(e.kind, "bad_keys") == 0 && e.text[0] && k.n == 0 && !k.items);
        return 0;
    }
    must(k.n <= KEYS_MAX);
    for (unsigned i = 0; i < k.n; i++)
        check_key(&k.items[i]);
    must(keys_find(&k, "clk_x", 5) == NULL);
    AUTO_BUF text = BUF_INIT, twice = BUF_INIT;
    keys_encode(&k, &text);
    must(keys_parse(text.data, text.len, &again, &e) == 0 && again.n == k.n);
    keys_encode(&again, &twice);
    must(twice.len == text.len && memcmp(twice.data, text.data, text.len) == 0);
    return 0;
}
