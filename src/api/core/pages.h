#pragma once
/* limit and after: lists in pages. Without a limit a list is whole. For api/ only. */

#include "api/core/call.h"
#include "base/rope.h"

#define PAGES_MOST 10000

extern const struct schema pages_query;
/* The member that a page ends with. */
#define PAGE_NEXT_HELP "the `after` of the next page; null: this is the last"
#define PAGE_NEXT      HAS_OR_NULL("next", FIELD_STRING, .help = PAGE_NEXT_HELP)

struct page {
    uint32_t limit;   /* 0: all */
    uint64_t after;   /* a place, of the list's own kind; 0: from the beginning */
    const char *name; /* borrowed from the request: `after`, where it is a name; or NULL */
};
/* False: the client has its reply. */
bool page_read(struct call *c, struct page *ret);
/* The page's last member: where the next one begins; 0: there is none. */
void page_end(struct jw *j, uint64_t after);

/* Short lists whose places are ids: `after` is the last that the client has. */
struct page_walk {
    struct page page;
    uint32_t n;
    bool on, more; /* `after` was found; there is more than the page takes */
    char last[48];
    struct rope before; /* owned until page_reply: long texts go in here, */
    struct buf json;    /* and what follows them in here */
    struct jw j;
};
/* The list is the member `name` of an object. False: the client has its reply. */
bool page_walk(struct call *c, const char *name, struct page_walk *ret);
/* Where to write the item of this id; NULL: it is not on the page. */
struct buf *page_place(struct page_walk *w, const char *id);
/* Replies with the list and `next`; or `after` is unknown. */
void page_reply(struct call *c, struct page_walk *w);
