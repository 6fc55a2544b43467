/* Any bytes as what a program printed or left in a file, on its way to a model (api/mcp): inside
 * and outside of JSON, without its middle, as a terminal shows it, and in numbered lines. */

#include "api/mcp/cut.h"
#include "api/mcp/plain.h"
#include "api/mcp/window.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 1000u

static void must(bool holds) {
    if (!holds)
        abort();
}

/* No controls but lines and tabs. */
static void must_be_plain(const struct buf *text) {
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->data[i];
        must((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t');
    }
}

/* What is escaped means itself again, and may be cut where the cut says. */
static void check_inside(const struct buf *inside) {
    AUTO_BUF text = BUF_INIT, again = BUF_INIT, parts = BUF_INIT;
    json_unescape(&text, inside->data, inside->len);
    json_escape(&again, text.data, text.len);
    must(again.len == inside->len && memcmp(again.data, inside->data, again.len) == 0);
    for (size_t at = 0, to; at < inside->len; at = to) {
        to = at + json_inside_cut(inside->data + at, inside->len - at, 7);
        must(to > at);
        json_unescape(&parts, inside->data + at, to - at);
    }
    must(parts.len == text.len && memcmp(parts.data, text.data, text.len) == 0);
}

static void check_cut(const struct buf *inside, size_t pieces) {
    struct cut c = {0};
    AUTO_BUF text = BUF_INIT;
    for (size_t i = 0; i < pieces; i++)
        cut_add(&c, inside->data, inside->len);
    cut_text(&c, MOST, "rest", &text);
    must(text_chars(text.data, text.len) <= MOST);
    must_be_plain(&text);
    cut_done(&c);
}

static void check_window(const uint8_t *data, size_t size) {
    struct window w = {.first = 1 + size % 3, .lines = 5, .text = BUF_INIT};
    w.fd = memfd_create("window", MFD_CLOEXEC);
    must(w.fd >= 0 && write(w.fd, data, size) == (ssize_t)size);
    while (window_slice(&w))
        ;
    must(!w.failed && w.size == size);
    if (w.kind == WINDOW_TEXT)
        must_be_plain(&w.text);
    window_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF inside = BUF_INIT, hostile = BUF_INIT, plain = BUF_INIT;
    json_escape(&inside, (const char *)data, size);
    check_inside(&inside);
    check_cut(&inside, 1);
    check_cut(&inside, 50);
    json_unescape(&hostile, (const char *)data, size); /* no JSON: it ends, all the same */
    plain_add(&plain, hostile.data, hostile.len);
    must_be_plain(&plain);
    check_window(data, size);
    return 0;
}
