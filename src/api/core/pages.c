/* See pages.h. */

#include "api/core/pages.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct field pages_fields[] = {
    {.name = "limit",
     .type = FIELD_INT,
     .flags = FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = PAGES_MOST,
     .help = "how many at most; all, unless it is given"},
    {.name = "after",
     .type = FIELD_STRING,
     .help = "what the page before has as next, or the last that you have"},
};

const struct schema pages_query = {"", pages_fields, 2, false};

bool page_read(struct call *c, struct page *ret) {
    const struct num_rule limits = {"limit", 1, PAGES_MOST}, places = {"after", 1, INT64_MAX};
    const char *limit = call_query(c, "limit"), *after = call_query(c, "after");
    struct err e;
    *ret = (struct page){.limit = 0};
    if (limit && num_u32(limit, &limits, &ret->limit, &e) < 0) {
        call_refuse(c, "bad_value", "%s", e.text);
        return false;
    }
    if (after && num_u64(after, &places, &ret->after, &e) < 0)
        ret->name = after;
    return true;
}

void page_end(struct jw *j, uint64_t after) {
    char next[24];
    snprintf(next, sizeof next, "%" PRIu64, after);
    jw_key_str(j, "next", after ? next : NULL);
}

bool page_walk(struct call *c, const char *name, struct page_walk *ret) {
    *ret = (struct page_walk){.json = BUF_INIT};
    if (!page_read(c, &ret->page))
        return false;
    ret->page.name = call_query(c, "after");
    ret->on = !ret->page.name;
    ret->j = (struct jw)JW_INIT(&ret->json);
    jw_object(&ret->j);
    jw_key(&ret->j, name);
    jw_array(&ret->j);
    return true;
}

struct buf *page_place(struct page_walk *w, const char *id) {
    if (!w->on) {
        w->on = strcmp(id, w->page.name) == 0;
        return NULL;
    }
    w->more = w->page.limit && w->n == w->page.limit;
    if (w->more)
        return NULL;
    w->n++;
    snprintf(w->last, sizeof w->last, "%s", id);
    jw_raw(&w->j, "", 0); /* what goes before it */
    return &w->json;
}

void page_reply(struct call *c, struct page_walk *w) {
    jw_array_end(&w->j);
    jw_key_str(&w->j, "next", w->more ? w->last : NULL);
    jw_object_end(&w->j);
    rope_add(&w->before, &w->json);
    if (w->on)
        http_reply_rope(c->req, 200, "application/json", &w->before);
    else
        call_bad_value(c, "begin again, without after", "after: there is none of that name");
    rope_done(&w->before);
}
