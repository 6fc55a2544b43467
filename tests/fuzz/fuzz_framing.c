/* Any bytes as a connection's, whole and cut into pieces, whose sizes the first byte chooses: what
 * is found does not depend on the pieces. And what is let through as chunks has no line that ends
 * in a bare LF: a reader that takes LF for the end of a line finds the same end of the body. */

#include "http/framing.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char head[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool is_same(const struct framing *a, const struct framing *b) {
    return a->state == b->state && a->heads == b->heads && a->bodies == b->bodies &&
           a->wrong == b->wrong && a->cut == b->cut && a->left == b->left;
}

/* One line as a lenient reader takes it: up to an LF, without a CR before it. */
static const char *line_at(const char *at, const char *end, size_t *ret_len) {
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    if (!lf)
        return NULL;
    *ret_len = (size_t)(lf - at) - (lf > at && lf[-1] == '\r');
    return lf + 1;
}

/* Where a lenient reader sees the end of a chunked body; NULL: it is not whole. */
static const char *lenient_end(const char *at, const char *end) {
    for (;;) {
        size_t len;
        const char *next = line_at(at, end, &len);
        if (!next)
            return NULL;
        uint64_t n = strtoull(at, NULL, 16);
        at = next;
        if (n == 0)
            break;
        if (n >= (uint64_t)(end - at))
            return NULL;
        at = line_at(at + n, end, &len);
        if (!at)
            return NULL;
    }
    for (size_t len = 1; len > 0 && at;)
        at = line_at(at, end, &len);
    return at;
}

/* Feeds a body byte by byte until it ends: how many bytes that took. */
static size_t strict_len(const char *body, size_t size) {
    struct framing f = {0};
    framing_add(&f, head, sizeof head - 1);
    for (size_t i = 0; i < size && !f.wrong; i++) {
        framing_add(&f, body + i, 1);
        if (f.bodies == 1)
            return i + 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct framing whole = {0}, cut = {0};
    if (size == 0)
        return 0;
    const size_t step = 1u + data[0] % 16;
    char *text = malloc(size);
    must(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[--size] = '\0';
    size_t good = framing_add(&whole, text, size);
    for (size_t at = 0; at < size; at += step)
        good -= framing_add(&cut, text + at, size - at < step ? size - at : step);
    must(good == 0 && is_same(&whole, &cut));
    must(whole.bodies <= whole.heads && whole.heads <= whole.bodies + 1);
    size_t n = strict_len(text, size);
    must(n == 0 || lenient_end(text, text + size) == text + n);
    free(text);
    return 0;
}
