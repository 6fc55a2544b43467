/* See utf8_stream.h. */

#include "base/utf8_stream.h"

#include "base/json.h"

#include <string.h>

/* How many bytes at the end may be the beginning of a character. */
static size_t open_end(const char *data, size_t len) {
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char c = (unsigned char)data[len - back];
        if (c < 0x80)
            return 0;
        if (c >= 0xc0) {
            size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            return want > back ? back : 0;
        }
    }
    return 0;
}

void utf8_stream_add(struct utf8_stream *p, const void *data, size_t len, struct buf *to) {
    size_t before = to->len;
    buf_add(to, p->tail, p->len);
    buf_add(to, data, len);
    p->len = open_end(to->data + before, to->len - before);
    to->len -= p->len;
    memcpy(p->tail, to->data + to->len, p->len);
}

void utf8_stream_end(struct utf8_stream *p, struct buf *to) {
    buf_add(to, p->tail, p->len);
    p->len = 0;
}

static const struct field text_fields[] = {HAS("data", FIELD_STRING)};
const struct schema utf8_stream_schema = {SCHEMA("Text", text_fields)};

void utf8_stream_json(const struct buf *text, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key(&j, "data");
    jw_strn(&j, text->data, text->len);
    jw_object_end(&j);
}
