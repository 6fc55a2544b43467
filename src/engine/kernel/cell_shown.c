/* See cell_shown.h. */

#include "engine/kernel/cell_shown.h"

#include "base/buf.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/process/live_state.h"
#include "engine/said/said.h"

void cell_emit(struct cell *c, const char *type, const struct buf *json) {
    live_said(c->kernel->live);
    if (c->cb.on_event)
        c->cb.on_event(c->cb.arg, type, json);
}

/* One that is to end is not held any more: what its slow reader has no room for is dropped. */
bool cell_has_room(struct cell *c) {
    bool room = !c->held || c->stop == STOP_NONE;
    c->shown.cut |= !room;
    return room;
}

static void emit_text(struct cell *c, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    if (text->len == 0 || !cell_has_room(c))
        return;
    utf8_stream_json(text, &json);
    cell_emit(c, stream == 1 ? "stdout" : "stderr", &json);
}

/* But for the last bytes of stdout and of stderr. */
static void clear_but(struct cell *c, size_t out, size_t err) {
    c->clear_next = false;
    shown_done(&c->shown);
    output_clear(&c->kernel->out[0], out);
    output_clear(&c->kernel->out[1], err);
}

/* clear_output(wait=True) comes true when there is something new. */
void cell_clear_shown(struct cell *c) {
    clear_but(c, 0, 0);
}

void cell_print(struct cell *c, int stream, const void *data, size_t len) {
    AUTO_BUF text = BUF_INIT;
    if (c->clear_next)
        clear_but(c, stream == 1 ? len : 0, stream == 2 ? len : 0);
    utf8_stream_add(&c->utf8[stream - 1], data, len, &text);
    emit_text(c, stream, &text);
}

/* What came in part of a character, at the end. */
void cell_flush_tails(struct cell *c) {
    for (int i = 0; i < 2; i++) {
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&c->utf8[i], &text);
        emit_text(c, i + 1, &text);
    }
}

/* Takes the text: the event is what is kept, without its end. */
void cell_show(struct cell *c, struct said *s, bool is_main) {
    struct shown_output o;
    if (c->clear_next)
        cell_clear_shown(c);
    c->shown.cut |= s->cut || said_true(s, "cut");
    shown_read(s, is_main, c->execution_count, &o);
    if (cell_has_room(c))
        cell_emit(c, is_main ? "result" : "display", &o.text);
    shown_keep(&c->shown, &o);
}
