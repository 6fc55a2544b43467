/* Any bytes as a form: the Content-Type up to the first line end, then the body. However it is cut,
 * the same parts come out, each with its beginning first, and there is never more than came in. */

#include "http/form.h"

#include "base/buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct buf parts;
    size_t bytes;
};

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool note(void *arg, const struct form_part *p) {
    struct seen *s = arg;
    must(p->name && p->data && (p->first || s->parts.len > 0) && p->first == (p->len == 0));
    if (p->first)
        buf_addf(&s->parts, "[%s|%s]", p->name, p->filename ? p->filename : "");
    buf_add(&s->parts, p->data, p->len);
    s->bytes += p->len;
    return true;
}

static bool read_form(const char *type, const char *body, size_t len, size_t step,
                      struct seen *ret) {
    *ret = (struct seen){.parts = BUF_INIT};
    struct form *f = form_new(type, note, ret);
    if (!f)
        return false;
    for (size_t at = 0; at < len; at += step)
        form_add(f, body + at, len - at < step ? len - at : step);
    bool whole = form_is_whole(f);
    must(ret->bytes <= len);
    form_free(f);
    return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO_BUF text = BUF_INIT;
    struct seen all, some;
    buf_add(&text, data, size);
    size_t line = strcspn(text.data, "\n");
    size_t from = line < size ? line + 1 : size;
    text.data[line] = '\0';
    bool whole = read_form(text.data, text.data + from, size - from, size + 1, &all);
    bool again = read_form(text.data, text.data + from, size - from, 3, &some);
    must(whole == again);
    /* Of a form that is cut off the last bytes may still be held back. */
    must(!whole || (all.parts.len == some.parts.len &&
                    memcmp(all.parts.data, some.parts.data, all.parts.len) == 0));
    buf_done(&all.parts);
    buf_done(&some.parts);
    return 0;
}
