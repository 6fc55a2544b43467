/* Any text as the value of a header, and as what a value is to mean. */

#include "mcp/header.h"

#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF value = BUF_INIT;
    AUTO_BUF meaning = BUF_INIT;
    AUTO_BUF encoded = BUF_INIT;
    buf_add(&value, data, size);
    mcp_header_decode(value.data, &meaning);
    if (!json_is_utf8((const char *)data, size) || size > 1000)
        return 0;
    mcp_header_encode((const char *)data, size, &encoded);
    for (size_t i = 0; i < encoded.len; i++)
        if (encoded.data[i] < 0x20 || encoded.data[i] > 0x7e)
            abort();
    if (!mcp_header_is(encoded.data, (const char *)data, size))
        abort();
    return 0;
}
