/* GET /v1/files: all of them, or a page. However many there are, the list is written as the client
 * takes it, a slice at a time, from the store itself. */

#include "api/native/files.h"
#include "api/native/native.h"

#include "api/core/call.h"
#include "api/core/pages.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS 2000u /* files of any tenant in one slice */

struct listing {
    struct http_source source;
    struct store_cursor cursor;
    char tenant[65];
    struct page page;
    uint32_t n;
    uint64_t last; /* the place of the last one that was written */
    bool begun, comma;
};

/* Pages go by the time of upload, which stays when files go meanwhile. No two have the same; a
 * double of today has about five steps in a microsecond. */
static uint64_t place_of(const struct store_entry *e) {
    return (uint64_t)(e->uploaded * 1e7);
}

static void put_file(struct jw *j, const struct store_entry *e) {
    jw_object(j);
    files_put_entry(j, e);
    jw_key_real(j, "upload_time", e->uploaded);
    jw_object_end(j);
}

/* False when the page is full. */
static bool add_file(struct listing *l, struct jw *j, const struct store_entry *e) {
    if (l->page.after && place_of(e) >= l->page.after)
        return true;
    if (l->page.limit && l->n == l->page.limit)
        return false;
    put_file(j, e);
    l->n++;
    l->last = place_of(e);
    return true;
}

static bool more_files(struct http_source *s, struct buf *to) {
    struct listing *l = (struct listing *)s;
    struct jw j = {.to = to, .comma = l->comma};
    const struct store_entry *e;
    unsigned looks = LOOKS;
    bool goes_on = true;
    if (!l->begun) {
        jw_object(&j);
        jw_key(&j, "files");
        jw_array(&j);
    }
    l->begun = true;
    while (goes_on && to->len < HTTP_SLICE && (e = store_list_next(&l->cursor, l->tenant, &looks)))
        goes_on = add_file(l, &j, e);
    l->comma = j.comma;
    if (goes_on && !store_list_is_over(&l->cursor))
        return true;
    jw_array_end(&j);
    if (l->page.limit)
        page_end(&j, goes_on ? 0 : l->last);
    jw_object_end(&j);
    return false;
}

static void files_list_free(struct http_source *s) {
    struct listing *l = (struct listing *)s;
    store_list_end(&l->cursor);
    free(l);
}

/* What an earlier page has as next, or a file. */
static bool read_page(struct call *c, struct page *ret) {
    struct store_entry e;
    struct err why;
    if (!page_read(c, ret))
        return false;
    if (!ret->name)
        return true;
    if (store_find(c->api->o.store, c->who.tenant, ret->name, &e, NULL, &why) < 0) {
        call_fail(c, &why);
        return false;
    }
    ret->after = place_of(&e);
    store_entry_done(&e);
    return true;
}

static void do_files(struct call *c) {
    struct page page;
    if (!read_page(c, &page))
        return;
    struct listing *l = xcalloc(1, sizeof *l);
    *l = (struct listing){.source = {more_files, files_list_free}, .page = page};
    memcpy(l->tenant, c->who.tenant, sizeof l->tenant);
    store_list(c->api->o.store, &l->cursor);
    http_reply_from(c->req, 200, "application/json", &l->source);
}

static const struct field listed_fields[] = {
    HAS("upload_time", FIELD_REAL, .help = "unix time"),
};
static const struct schema listed_schema = {SCHEMA("ListedFile", listed_fields),
                                            .with = &files_entry_schema};
static const struct field list_fields[] = {
    HAS("files", LIST_OF(listed_schema)),
    /* As the Code Interpreter API has it, a list without a limit has no such member. */
    {.name = "next", .flags = FIELD_NULLABLE, .help = PAGE_NEXT_HELP},
};
static const struct schema list_schema = {SCHEMA("FileList", list_fields)};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/v1/files", "List files, newest first", "files", NULL, NULL, 200,
      "the files, and with a limit what comes next", JSON_TYPE, &pages_query,
      .gives = &list_schema, .errors = "no_file"}, do_files},
};
/* clang-format on */
const struct route_table files_list_routes = ROUTE_TABLE(routes);
