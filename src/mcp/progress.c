/* See progress.h. By itself progress counts seconds, with the last line that was printed. */

#include "mcp/progress.h"

#include "base/clock.h"
#include "base/text.h"
#include "mcp/internal.h"
#include "mcp/stream.h"

#include <string.h>

#define TAIL_MAX 1024 /* bytes of what was printed last */

static void put_token(struct jw *j, const json_t *token) {
    jw_key(j, "progressToken");
    jw_json(j, token, "null");
}

static void send(struct mcp_call *c, double done, double total, const char *message) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    rpc_begin_notification(&j, "notifications/progress");
    jw_key(&j, "params");
    jw_object(&j);
    put_token(&j, c->progress.token);
    jw_key_real(&j, "progress", done);
    if (total > 0)
        jw_key_real(&j, "total", total);
    if (message && *message)
        jw_key_str(&j, "message", message);
    jw_object_end(&j);
    rpc_end(&j);
    c->progress.told_ns = now_ns();
    c->progress.said = false;
    call_send(c, &text);
}

/* The last line that has anything in it; escapes for terminals and the like are left out. */
static void last_line(const struct buf *tail, struct buf *to) {
    size_t end = tail->len, from;
    while (end > 0 && strchr("\r\n \t", tail->data[end - 1]))
        end--;
    for (from = end; from > 0 && !strchr("\r\n", tail->data[from - 1]);)
        from--;
    unsigned n = 0;
    for (size_t at = from, len; at < end && n < PROGRESS_TEXT; at += len, n++) {
        uint32_t character = 0;
        len = text_char(tail->data + at, end - at, &character);
        if (len && text_is_plain(character))
            buf_add(to, tail->data + at, len);
        len = len ? len : 1;
    }
}

static void progress_on_tick(struct timer *t) {
    struct mcp_call *c = t->arg;
    struct progress *p = &c->progress;
    uint64_t now = now_ns();
    AUTO_BUF line = BUF_INIT;
    loop_timer_in_ms(c->m->host.loop, t, PROGRESS_LEAST_MS);
    if (!c->to || c->is_cancelled || stream_is_full(c->to))
        return;
    if (!p->said && now - p->told_ns < ms_to_ns(PROGRESS_MOST_MS))
        return;
    last_line(&p->tail, &line);
    send(c, (double)(now - p->began_ns) / 1e9, 0, line.data);
}

void progress_begin(struct mcp_call *c) {
    struct progress *p = &c->progress;
    json_t *token = json_object_get(json_object_get(c->params, "_meta"), "progressToken");
    if (!json_is_integer(token) &&
        !(json_is_string(token) && json_string_length(token) <= RPC_ID_MAX))
        return;
    p->token = json_incref(token);
    p->began_ns = p->told_ns = now_ns();
    p->tick = (struct timer){.fn = progress_on_tick, .arg = c};
    if (c->kind == CALL_TOOL)
        loop_timer_in_ms(c->m->host.loop, &p->tick, PROGRESS_LEAST_MS);
}

void progress_end(struct mcp_call *c) {
    loop_timer_stop(c->m->host.loop, &c->progress.tick);
    json_decref(c->progress.token);
    c->progress.token = NULL;
    buf_done(&c->progress.tail);
}

void mcp_say(struct mcp_call *c, const char *text, size_t len) {
    struct progress *p = &c->progress;
    if (!p->token || p->by_handler)
        return;
    if (len > TAIL_MAX) {
        text += len - TAIL_MAX;
        len = TAIL_MAX;
    }
    buf_add(&p->tail, text, len);
    if (p->tail.len > TAIL_MAX)
        buf_drop(&p->tail, p->tail.len - TAIL_MAX);
    p->said = true;
}

void mcp_progress(struct mcp_call *c, double done, double total, const char *message) {
    c->progress.by_handler = true;
    loop_timer_stop(c->m->host.loop, &c->progress.tick);
    if (c->progress.token && c->to && !c->is_cancelled && !stream_is_full(c->to))
        send(c, done, total, message);
}
