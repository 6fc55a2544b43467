/* See cell_shown.h. */

#include "engine/kernel/cell_shown.h"

#include "base/buf.h"
#include "base/json.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/said.h"
#include "engine/process/live_state.h"

#include <stdlib.h>
#include <string.h>

#define ALL_SHOWN 20000 /* results and displays of all executions in a sandbox, */
#define FEW_SHOWN 100   /* but for so many of each, which always find room */

static void free_output(struct cell_output *o) {
    buf_done(&o->shown);
    free(o->display_id);
}

static size_t output_size(const struct cell_output *o) {
    return o->shown.len + sizeof *o + 64 + (o->display_id ? strlen(o->display_id) : 0);
}

void cell_free_outputs(struct cell *c) {
    for (unsigned i = 0; i < c->noutputs; i++) {
        free_output(&c->outputs[i]);
    }
    free(c->outputs);
    free(c->display_hashes);
    c->outputs = NULL;
    c->display_hashes = NULL;
    c->account->shown -= c->noutputs;
    c->noutputs = 0;
    kept_count(c->account, c->outputs_bytes, 0);
    c->outputs_bytes = 0;
}

void cell_emit(struct cell *c, const char *type, const struct buf *json) {
    live_said(c->kernel->live);
    if (c->cb.on_event)
        c->cb.on_event(c->cb.arg, type, json);
}

/* One that is to end is not held any more: what its slow reader has no room for is dropped. */
bool cell_has_room(struct cell *c) {
    bool room = !c->held || c->stop == STOP_NONE;
    c->outputs_cut |= !room;
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
    cell_free_outputs(c);
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

/* Never 0, which is for none. */
static uint64_t hash_of(const char *id) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; id && *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return id ? h | 1 : 0;
}

/* SECURITY: there may be thousands, with names of 4 KiB that differ at the end. */
static struct cell_output *find_display(struct cell *c, const char *id) {
    uint64_t hash = hash_of(id);
    for (unsigned i = 0; hash && i < c->noutputs; i++) {
        if (c->display_hashes[i] == hash && strcmp(c->outputs[i].display_id, id) == 0)
            return &c->outputs[i];
    }
    return NULL;
}

/* SECURITY: those of all cells are freed at once with their sandbox. */
static bool has_room_for_one(const struct cell *c) {
    return c->noutputs < FEW_SHOWN ||
           (c->noutputs < CELL_SHOWN_MOST && c->account->shown < ALL_SHOWN);
}

/* Takes `o`. */
static void keep_output(struct cell *c, struct cell_output *o, bool update) {
    struct cell_output *old = update ? find_display(c, o->display_id) : NULL;
    size_t size = c->outputs_bytes + output_size(o) - (old ? output_size(old) : 0);
    bool fits = size <= CELL_SHOWN_MAX && (old || has_room_for_one(c)) &&
                kept_room(c->account, c->outputs_bytes, output_size(o)) == output_size(o);
    c->outputs_cut |= !fits;
    if (!fits || (update && !old)) { /* of an earlier execution: whoever follows has the event */
        free_output(o);
        return;
    }
    kept_count(c->account, c->outputs_bytes, size);
    c->outputs_bytes = size;
    if (old) {
        o->is_main = old->is_main;
        free_output(old);
        *old = *o;
        return;
    }
    if ((c->noutputs & (c->noutputs - 1)) == 0) { /* a power of two: the room is used up */
        size_t n = c->noutputs ? 2 * c->noutputs : 1;
        c->outputs = xrealloc(c->outputs, n * sizeof *c->outputs);
        c->display_hashes = xrealloc(c->display_hashes, n * sizeof *c->display_hashes);
    }
    c->account->shown++;
    c->display_hashes[c->noutputs] = hash_of(o->display_id);
    c->outputs[c->noutputs++] = *o;
}

static const struct field transient_fields[] = {HAS("display_id", FIELD_STRING)};
static const struct schema transient_schema = {SCHEMA("Transient", transient_fields)};

static const struct field main_fields[] = {
    HAS("data", MAP_OF(FIELD_JSON), .help = "by MIME type"),
    HAS("metadata", FIELD_OBJECT),
    HAS("execution_count", FIELD_INT),
    MAY_HAVE("transient", OBJECT(transient_schema)),
};
const struct schema cell_main_schema = {SCHEMA("Shown", main_fields),
                                        .help = "the value of the last expression"};

static const struct field display_fields[] = {
    HAS("data", MAP_OF(FIELD_JSON), .help = "by MIME type"),
    HAS("metadata", FIELD_OBJECT),
    HAS_OR_NULL("display_id", FIELD_STRING),
    HAS("update", FIELD_BOOL, .help = "instead of what was shown with this id"),
};
const struct schema cell_display_schema = {SCHEMA("Displayed", display_fields)};

/* Takes the text: the event is what is kept, with its end. */
void cell_show(struct cell *c, struct said *s, bool is_main) {
    const char *id = said_str(s, "display_id");
    struct cell_output o = {.shown = s->text,
                            .plain_at = s->plain_at,
                            .plain_len = s->plain_len,
                            .display_id = id ? xstrdup(id) : NULL,
                            .is_main = is_main};
    bool update = said_true(s, "update");
    size_t open = o.shown.len;
    s->text = (struct buf)BUF_INIT;
    if (c->clear_next)
        cell_clear_shown(c);
    struct jw j = {.to = &o.shown, .comma = true};
    if (is_main) {
        jw_key_uint(&j, "execution_count", c->execution_count);
        if (id) { /* as Jupyter has it */
            jw_key(&j, "transient");
            jw_object(&j);
            jw_key_str(&j, "display_id", id);
            jw_object_end(&j);
        }
    } else {
        jw_key_str(&j, "display_id", o.display_id);
        jw_key_bool(&j, "update", update);
    }
    jw_object_end(&j);
    c->outputs_cut |= s->cut || said_true(s, "cut");
    if (cell_has_room(c))
        cell_emit(c, is_main ? "result" : "display", &o.shown);
    o.shown.len = open;
    keep_output(c, &o, update);
}
