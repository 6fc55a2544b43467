/* What a hostile kernel says to the server: whatever is made of it is JSON again, and bounded. */

#include "base/json.h"
#include "base/json_value.h"
#include "engine/said/said.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct said s;
    struct err e;
    if (said_read((const char *)data, size, &s, &e) < 0)
        return 0;
    const char *kind = said_str(&s, "ev");
    bool is_open = kind && (strcmp(kind, "result") == 0 || strcmp(kind, "display") == 0);
    if (s.plain_at + s.plain_len > s.text.len)
        abort();
    if (is_open)
        buf_addc(&s.text, '}');
    if (s.text.len && !json_is_value(s.text.data, s.text.len))
        abort();
    if (s.plain_len && !json_is_value(s.text.data + s.plain_at, s.plain_len))
        abort();
    if (is_open) { /* what we wrote ourselves is found again */
        struct json_span bundle = json_member(s.text.data, s.text.len, "metadata");
        if (!bundle.at || !json_is_value(bundle.at, bundle.len))
            abort();
    }
    said_done(&s);
    return 0;
}
