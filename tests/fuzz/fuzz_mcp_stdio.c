/* What an MCP client writes: lines, the id of one that is too long, messages. */

#include "remote/mcp/lines.h"
#include "remote/mcp/message.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines l = LINES_INIT;
    const char *line;
    size_t len, half = size / 2;
    AUTO_BUF header = BUF_INIT;
    lines_add(&l, (const char *)data, half);
    lines_add(&l, (const char *)data + half, size - half);
    lines_end(&l);
    for (enum line_got got; (got = lines_next(&l, &line, &len)) != LINE_NONE;) {
        struct err e;
        AUTO_MESSAGE m = {0};
        if (got == LINE_TOO_LONG)
            message_error_of(&header, line, MCP_INVALID, "too long");
        else if (message_read(line, len, &m, &e) == 0)
            message_header(&header, "Mcp-Name", m.name ? m.name : m.method);
    }
    /* A line that is too long, without four megabytes of it: all is skimmed from its middle. */
    l.skipping = true;
    lines_add(&l, (const char *)data, size);
    lines_end(&l);
    while ((lines_next(&l, &line, &len)) != LINE_NONE)
        message_error_of(&header, line, MCP_INVALID, "too long");
    lines_done(&l);
    return 0;
}
