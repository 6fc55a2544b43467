/* See download.h. */

#include "api/files/download.h"

#include "api/files/paths.h"
#include "api/files/ranges.h"
#include "base/fd.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define DATE_ROOM 40

/* Whether a list of tags has this one, weak or not. */
static bool has_tag(const char *list, const char *tag) {
    return strcmp(list, "*") == 0 || strstr(list, tag);
}

static bool is_known(const struct call *c, const struct download *d, const char *date) {
    const char *tags = http_header(c->req, "If-None-Match");
    const char *since = http_header(c->req, "If-Modified-Since");
    return tags ? has_tag(tags, d->tag) : since && *date && strcmp(since, date) == 0;
}

/* What is asked for; the whole when the client has a part of something else. */
static enum range part_of(const struct call *c, const struct download *d, const char *date,
                          struct range_part *ret) {
    const char *range = http_header(c->req, "Range"), *of = http_header(c->req, "If-Range");
    *ret = (struct range_part){0, d->size};
    if (!range || strcmp(http_method(c->req), "GET") != 0 ||
        (of && strcmp(of, d->tag) != 0 && strcmp(of, date) != 0))
        return RANGE_ALL;
    return range_read(range, d->size, ret);
}

const struct api_reply download_replies[] = {DOWNLOAD_REPLIES};

static void beyond(struct call *c, uint64_t size) {
    struct problem p = {.status = 416,
                        .code = "bad_range",
                        .remediation =
                            "ask for bytes that are there; Content-Range tells the size"};
    char text[64];
    snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    snprintf(p.text, sizeof p.text, "the file has %llu bytes, and none in this range",
             (unsigned long long)size);
    http_add_header(c->req, "Content-Range", text);
    call_problem(c, &p);
}

static void send_part(struct call *c, int *fd, enum range what, const struct range_part *part,
                      const struct download *d) {
    char text[80];
    if (what == RANGE_PART) {
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)part->from,
                 (unsigned long long)(part->from + part->len - 1), (unsigned long long)d->size);
        http_add_header(c->req, "Content-Range", text);
    }
    http_reply_file(c->req, what == RANGE_PART ? 206 : 200,
                    d->type ? d->type : "application/octet-stream", fd, part->from, part->len);
}

void download_reply(struct call *c, const struct download *d, int *fd) {
    AUTO_FD file = fd_take(fd);
    AUTO_BUF name = BUF_INIT;
    struct range_part part;
    struct tm tm;
    char date[DATE_ROOM] = "";
    http_add_header(c->req, "ETag", d->tag);
    /* A program may give its file a time that HTTP cannot write; the tag is then all there is. */
    if (text_date((double)d->modified, &tm) &&
        strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
        http_add_header(c->req, "Last-Modified", date);
    http_add_header(c->req, "Accept-Ranges", "bytes");
    if (is_known(c, d, date)) {
        http_reply(c->req, 304, NULL, "", 0);
        return;
    }
    enum range what = part_of(c, d, date, &part);
    if (what == RANGE_NONE) {
        beyond(c, d->size);
        return;
    }
    paths_disposition(d->name, &name);
    if (d->type) /* SECURITY: a page that somebody's program wrote is of no site, and runs nothing
                  */
        http_add_header(c->req, "Content-Security-Policy", "sandbox");
    else
        http_add_header(c->req, "Content-Disposition", name.data);
    http_add_header(c->req, "X-Content-Type-Options", "nosniff");
    send_part(c, &file, what, &part, d);
}
