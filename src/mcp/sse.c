/* See sse.h. Lines end with CR, LF or both; the first may begin with a byte order mark. */

#include "mcp/sse.h"

#include <string.h>

#define RETRY_MAX_MS 3600000u

void sse_write(struct buf *to, const char *id, const char *data, size_t len) {
    if (id)
        buf_addf(to, "id: %s\n", id);
    buf_adds(to, "data: ");
    buf_add(to, data ? data : "", data ? len : 0);
    buf_adds(to, "\n\n");
}

static void sse_event(struct sse_reader *r) {
    if (r->has_data)
        r->on_event(r->arg, r->type.len ? r->type.data : "message", r->id.data, &r->text);
    r->has_data = false;
    buf_clear(&r->text);
    buf_clear(&r->type);
}

static void sse_set_retry(struct sse_reader *r, const char *text, size_t len) {
    uint64_t ms = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return;
        if (ms < RETRY_MAX_MS)
            ms = ms * 10 + (uint64_t)(text[i] - '0');
    }
    if (len)
        r->retry_ms = ms > RETRY_MAX_MS ? RETRY_MAX_MS : ms;
}

static void sse_field(struct sse_reader *r, const char *name, size_t n, const char *value,
                      size_t len) {
    if (n == 4 && memcmp(name, "data", n) == 0) {
        if (r->has_data)
            buf_addc(&r->text, '\n');
        r->has_data = true;
        buf_add(&r->text, value, len);
    } else if (n == 5 && memcmp(name, "event", n) == 0) {
        buf_clear(&r->type);
        buf_add(&r->type, value, len);
    } else if (n == 2 && memcmp(name, "id", n) == 0 && !memchr(value, '\0', len)) {
        buf_clear(&r->id);
        buf_add(&r->id, value, len);
    } else if (n == 5 && memcmp(name, "retry", n) == 0) {
        sse_set_retry(r, value, len);
    }
}

static void sse_line(struct sse_reader *r) {
    const char *line = r->line.data;
    size_t len = r->line.len;
    if (!r->begun && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    r->begun = true;
    const char *colon = memchr(line, ':', len);
    size_t n = colon ? (size_t)(colon - line) : len, skip = colon ? n + 1 : n;
    if (len == 0)
        sse_event(r);
    else if (n > 0) {
        skip += skip < len && line[skip] == ' ';
        sse_field(r, line, n, line + skip, len - skip);
    }
    buf_clear(&r->line);
}

bool sse_read(struct sse_reader *r, const char *bytes, size_t len) {
    while (len > 0) {
        if (r->after_cr && *bytes == '\n') {
            bytes++;
            len--;
            r->after_cr = false;
            continue;
        }
        r->after_cr = false;
        size_t n = 0;
        while (n < len && bytes[n] != '\n' && bytes[n] != '\r')
            n++;
        if (r->line.len + r->text.len + n > r->most)
            return false;
        buf_add(&r->line, bytes, n);
        if (n == len)
            return true;
        r->after_cr = bytes[n] == '\r';
        sse_line(r);
        bytes += n + 1;
        len -= n + 1;
    }
    return true;
}

void sse_reader_done(struct sse_reader *r) {
    buf_done(&r->id);
    buf_done(&r->line);
    buf_done(&r->text);
    buf_done(&r->type);
}
