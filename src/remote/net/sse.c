/* See sse.h. Of the format what servers send: `event`, `id` and `data` fields, comments, an empty
 * line at the end of each event. Other fields are skipped, as the format wants it. */

#include "remote/net/sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sse_add(struct sse *s, const char *data, size_t len) {
    if (s->at > 0) { /* what is read is never needed again */
        memmove(s->in.data, s->in.data + s->at, s->in.len - s->at);
        s->in.len -= s->at;
        s->scanned -= s->at;
        s->at = 0;
    }
    buf_add(&s->in, data, len);
}

static void take_field(struct sse *s, const char *line, size_t len) {
    const char *colon = memchr(line, ':', len);
    size_t name = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t rest = len - (size_t)(value - line);
    if (rest && *value == ' ') {
        value++;
        rest--;
    }
    if (name == 5 && memcmp(line, "event", 5) == 0) {
        snprintf(s->event, sizeof s->event, "%.*s", (int)(rest < 100 ? rest : 100), value);
    } else if (name == 2 && memcmp(line, "id", 2) == 0) {
        char number[24];
        snprintf(number, sizeof number, "%.*s", (int)(rest < 20 ? rest : 20), value);
        s->id = strtoull(number, NULL, 10);
    } else if (name == 4 && memcmp(line, "data", 4) == 0) {
        if (s->has_data)
            buf_addc(&s->body, '\n');
        buf_add(&s->body, value, rest);
        s->has_data = true;
    }
}

/* True at the end of an event that has data. */
static bool take_line(struct sse *s, const char *line, size_t len) {
    if (len && line[len - 1] == '\r')
        len--;
    if (s->fresh) {
        s->event[0] = '\0';
        buf_clear(&s->body);
        s->has_data = s->fresh = false;
    }
    if (len) {
        take_field(s, line, len);
        return false;
    }
    s->fresh = true;
    return s->has_data;
}

int sse_next(struct sse *s, struct err *e) {
    for (;;) {
        const char *from = s->in.data + s->scanned;
        const char *end = memchr(from, '\n', s->in.len - s->scanned);
        if (!end) {
            s->scanned = s->in.len;
            if (s->in.len - s->at + s->body.len > SSE_EVENT_MAX)
                return err_user(e, "bad_reply", "the server sent an event of more than %u bytes",
                                SSE_EVENT_MAX);
            return 0;
        }
        const char *line = s->in.data + s->at;
        s->at = s->scanned = (size_t)(end + 1 - s->in.data);
        if (s->body.len > SSE_EVENT_MAX)
            return err_user(e, "bad_reply", "the server sent an event of more than %u bytes",
                            SSE_EVENT_MAX);
        if (take_line(s, line, (size_t)(end - line)))
            return 1;
    }
}

void sse_done(struct sse *s) {
    buf_done(&s->in);
    buf_done(&s->body);
}
