#pragma once
/* What an execution or a command said, made into a result for a model: its text, its images, links
 * to the rest. It follows the record, so it can be made again from a record that is over. For
 * api/mcp only. */

#include "api/jobs/records.h"
#include "base/buf.h"
#include "base/json_value.h"

#include <stdbool.h>

#define REPORT_TEXT      29000u     /* characters of the text: an answer has 30,000 */
#define REPORT_ERROR     9500u      /* the same of an error: it has 10,000 */
#define REPORT_IMAGES    8u         /* images that go out; */
#define REPORT_IMAGE_MAX (4u << 20) /* bytes of one, as base64, */
#define REPORT_ALL       (6u << 20) /* and of all; links to the others */
#define REPORT_LINKS     8u         /* links to those */
#define REPORT_FILES     10u        /* files that it made */

struct report_image {
    const char *mime;  /* a constant */
    struct buf base64; /* owned */
    char *display_id;  /* owned, or NULL */
};

/* Of an image that is not among those: the number of its event. */
struct report_link {
    uint64_t number;
    const char *mime; /* a constant */
};

struct report {
    struct report_image images[REPORT_IMAGES];
    struct report_link links[REPORT_LINKS];
    unsigned nimages, nlinks, lost; /* lost: no link could be had */
    size_t bytes;                   /* of all images */
    uint64_t last;                  /* event that printed or showed something */
    uint64_t cleared;               /* what came up to this event is forgotten: clear_output() */
    bool clears_next;               /* the next one that shows something clears, too */
    struct buf error, failed, end;  /* JSON of these events; or nothing */
};
#define REPORT_INIT                                                                                \
    { .error = BUF_INIT, .failed = BUF_INIT, .end = BUF_INIT }

void report_done(struct report *r);
/* Each event of the record, from the first one on, as a follower hears it. */
void report_event(struct report *r, uint64_t number, const char *type, const char *json,
                  size_t len);

struct report_words {
    size_t text, error; /* characters at most */
    bool keeps_figures; /* also the texts that stand for images */
    bool is_ipybox;     /* errors as that writes them */
    const char *late;   /* what to do after a timeout */
};
/* What it printed and showed, without newlines at the end. True: something is left out. */
bool report_said(const struct report *r, struct record *rec, size_t most, bool keeps_figures,
                 struct buf *to);
/* All that is to be told of a cell whose record is over. */
struct report_told {
    bool is_error, cut;
};
struct report_told report_text(const struct report *r, struct record *rec,
                               const struct report_words *w, struct buf *to);
/* Up to `most` files that it made, each a JSON string; how many there were. */
unsigned report_files(const struct report *r, unsigned most,
                      void (*each)(void *arg, const char *path, size_t len), void *arg);
/* A member of its end, as JSON; or NULL at the beginning. */
struct json_span report_end(const struct report *r, const char *name);

/* The output of a record as the inside of one JSON string, as it was said, up to `most` bytes.
 * False: there is more. */
bool report_output(struct record *rec, size_t most, struct buf *to);
/* When the record is over: links to what it has no room for are images that are lost. */
void report_settle(struct report *r, struct record *rec);
/* An image of a record by the number of its event: base64, or the source of an SVG as the inside of
 * a JSON string; `to` may be NULL. Its type, or NULL: there is none. */
const char *report_image_of(struct record *rec, uint64_t number, struct buf *to);
