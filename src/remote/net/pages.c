/* See pages.h. A `next` is compared with one that is replaced after 1, 2, 4, … pages: so a circle
 * of any length is found, and one text is kept for it. */

#include "remote/net/pages.h"

#include "base/url.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#define PAGES_MOST 2000u /* of a hundred entries or more each, but for the last */

void pages_add(const struct pages *p, struct buf *path) {
    if (!p->after.len)
        return;
    buf_adds(path, "&after=");
    url_encode(path, p->after.data, "");
}

static int endless(struct err *e) {
    return err_user(e, "bad_reply", "the server's list has no end");
}

int pages_next(struct pages *p, const json_t *page, const char *list, struct err *e) {
    const char *next = json_string_value(json_object_get(page, "next"));
    json_t *entries = json_object_get(page, list);
    if (!next || !json_array_size(entries))
        return 0;
    bool again = p->n > 0 && (strcmp(next, p->mark.data) == 0 || strcmp(next, p->after.data) == 0);
    if (again || json_equal(entries, p->last) || ++p->n > PAGES_MOST)
        return endless(e);
    if ((p->n & (p->n - 1)) == 0) {
        buf_clear(&p->mark);
        buf_adds(&p->mark, next);
    }
    buf_clear(&p->after);
    buf_adds(&p->after, next);
    json_decref(p->last);
    p->last = json_incref(entries);
    return 1;
}

void pages_done(struct pages *p) {
    buf_done(&p->after);
    buf_done(&p->mark);
    json_decref(p->last);
    p->last = NULL;
}
