/* See header.h. */

#include "mcp/header.h"

#include "base/base64.h"
#include "base/json.h"

#include <string.h>

#define BEGIN "=?base64?"
#define END   "?="

static bool is_plain(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return len == 0 || (text[0] != ' ' && text[len - 1] != ' ');
}

static bool is_encoded(const char *text, size_t len) {
    const size_t begin = sizeof BEGIN - 1, end = sizeof END - 1;
    return len >= begin + end && memcmp(text, BEGIN, begin) == 0 &&
           memcmp(text + len - end, END, end) == 0;
}

static bool has_space(const char *text, size_t len) {
    return memchr(text, ' ', len) || memchr(text, '\t', len);
}

bool mcp_header_decode(const char *value, struct buf *to) {
    const size_t begin = sizeof BEGIN - 1, end = sizeof END - 1;
    value += strspn(value, " \t");
    size_t len = strlen(value), was = to->len;
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    if (len > MCP_HEADER_MAX)
        return false;
    if (!is_encoded(value, len)) {
        buf_add(to, value, len);
        return true;
    }
    const char *text = value + begin;
    size_t n = len - begin - end;
    return !has_space(text, n) && base64_decode(to, text, n) &&
           json_is_utf8(to->data + was, to->len - was);
}

void mcp_header_encode(const char *text, size_t len, struct buf *to) {
    if (is_plain(text, len) && !is_encoded(text, len)) {
        buf_add(to, text, len);
        return;
    }
    buf_adds(to, BEGIN);
    base64_encode(to, text, len);
    buf_adds(to, END);
}

bool mcp_header_is(const char *value, const char *text, size_t len) {
    AUTO_BUF meant = BUF_INIT;
    return mcp_header_decode(value, &meant) && meant.len == len &&
           memcmp(meant.data, text, len) == 0;
}
