#pragma once
/* Lists in pages. A server that is nobody's friend could go on for ever: with a `next` that came
 * before, with the page that was there already, or with page after page of almost nothing. */

#include "base/buf.h"
#include "base/err.h"

struct json_t;

/* All zero but the buffers: before the first page. */
struct pages {
    struct buf after; /* what the next page is asked for with; empty: the first */
    struct buf mark;  /* a `next` of before */
    unsigned n;
    struct json_t *last; /* owned: the list of the page before */
};
#define PAGES_INIT                                                                                 \
    { .after = BUF_INIT, .mark = BUF_INIT }
#define AUTO_PAGES __attribute__((cleanup(pages_done))) struct pages

/* "&after=…" behind the path of a question; nothing before the first page. */
void pages_add(const struct pages *p, struct buf *path);
/* After a page, whose member `list` is what it lists: 1 when there is another one, 0 when it was
 * the last. */
int pages_next(struct pages *p, const struct json_t *page, const char *list, struct err *e);
void pages_done(struct pages *p);
