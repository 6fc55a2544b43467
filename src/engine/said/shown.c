/* See shown.h. They may have tens of megabytes, so nothing large is copied: the result is made of
 * the pieces when it is read. */

#include "engine/said/shown.h"

#include "base/json.h"
#include "base/rope.h"
#include "engine/core/kept.h"
#include "engine/said/said.h"

#include <stdlib.h>
#include <string.h>

#define SMALL     4096u /* bytes of an output that is not worth a piece */
#define ALL_SHOWN 20000 /* results and displays of all executions in a sandbox, */
#define FEW_SHOWN 100   /* but for so many of each, which always find room */

static void free_output(struct shown_output *o) {
    buf_done(&o->text);
    free(o->display_id);
}

static size_t output_size(const struct shown_output *o) {
    return o->open + sizeof *o + 64 + (o->display_id ? strlen(o->display_id) : 0);
}

void shown_done(struct shown *s) {
    for (unsigned i = 0; i < s->n; i++) {
        free_output(&s->outputs[i]);
    }
    free(s->outputs);
    free(s->hashes);
    s->outputs = NULL;
    s->hashes = NULL;
    s->account->shown -= s->n;
    s->n = 0;
    kept_count(s->account, s->bytes, 0);
    s->bytes = 0;
}

void shown_read(struct said *said, bool is_main, uint64_t execution_count,
                struct shown_output *ret) {
    const char *id = said_str(said, "display_id");
    *ret = (struct shown_output){.text = said->text,
                                 .open = said->text.len,
                                 .plain_at = said->plain_at,
                                 .plain_len = said->plain_len,
                                 .display_id = id ? xstrdup(id) : NULL,
                                 .is_main = is_main,
                                 .update = said_true(said, "update")};
    said->text = (struct buf)BUF_INIT;
    struct jw j = {.to = &ret->text, .comma = true};
    if (is_main) {
        jw_key_uint(&j, "execution_count", execution_count);
        if (id) { /* as Jupyter has it */
            jw_key(&j, "transient");
            jw_object(&j);
            jw_key_str(&j, "display_id", id);
            jw_object_end(&j);
        }
    } else {
        jw_key_str(&j, "display_id", id);
        jw_key_bool(&j, "update", ret->update);
    }
    jw_object_end(&j);
}

/* Never 0, which is for none. */
static uint64_t hash_of(const char *id) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; id && *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return id ? h | 1 : 0;
}

/* SECURITY: there may be thousands, with names of 4 KiB that differ at the end. */
static struct shown_output *find_display(struct shown *s, const char *id) {
    uint64_t hash = hash_of(id);
    for (unsigned i = 0; hash && i < s->n; i++) {
        if (s->hashes[i] == hash && strcmp(s->outputs[i].display_id, id) == 0)
            return &s->outputs[i];
    }
    return NULL;
}

/* SECURITY: those of all cells are freed at once with their sandbox. */
static bool has_room_for_one(const struct shown *s) {
    return s->n < FEW_SHOWN || (s->n < SHOWN_MOST && s->account->shown < ALL_SHOWN);
}

static void add_output(struct shown *s, struct shown_output *o) {
    if ((s->n & (s->n - 1)) == 0) { /* a power of two: the room is used up */
        size_t n = s->n ? 2 * s->n : 1;
        s->outputs = xrealloc(s->outputs, n * sizeof *s->outputs);
        s->hashes = xrealloc(s->hashes, n * sizeof *s->hashes);
    }
    s->account->shown++;
    s->hashes[s->n] = hash_of(o->display_id);
    s->outputs[s->n++] = *o;
}

void shown_keep(struct shown *s, struct shown_output *o) {
    struct shown_output *old = o->update ? find_display(s, o->display_id) : NULL;
    size_t size = s->bytes + output_size(o) - (old ? output_size(old) : 0);
    bool fits = size <= SHOWN_BYTES_MAX && (old || has_room_for_one(s)) &&
                kept_room(s->account, s->bytes, output_size(o)) == output_size(o);
    s->cut |= !fits;
    if (!fits || (o->update && !old)) { /* of an earlier execution: whoever follows has the event */
        free_output(o);
        return;
    }
    o->text.len = o->open;
    kept_count(s->account, s->bytes, size);
    s->bytes = size;
    if (!old) {
        add_output(s, o);
        return;
    }
    o->is_main = old->is_main;
    free_output(old);
    *old = *o;
}

/* A value, of which this part of `of` is the JSON; behind what `j` has written so far. */
static void put_part(struct jw *j, struct rope *to, struct blob *of, size_t from, size_t len) {
    bool small = len <= SMALL;
    jw_raw(j, of->bytes.data + from, small ? len : 0);
    if (small)
        return;
    rope_add(to, j->to);
    rope_add_part(to, of, from, len);
}

/* The value. There is at most one, but for code that calls the hook itself. */
struct main_text {
    struct blob *text; /* owned, or NULL */
    size_t at, len;
};

static void put_output(struct jw *j, struct rope *to, struct shown_output *o,
                       struct main_text *value) {
    struct blob *text = blob_take(&o->text);
    put_part(j, to, text, 0, text->bytes.len);
    jw_key_bool(j, "is_main_result", o->is_main);
    jw_object_end(j);
    if (o->is_main) {
        blob_unref(value->text);
        *value = (struct main_text){blob_ref(text), o->plain_at, o->plain_len};
    }
    blob_unref(text);
}

/* Displays in their order and then the value, although IPython tells of it before the figures that
 * are left open: a figure is what somebody wants of a cell that ends in `df.plot()`. */
void shown_put(struct shown *s, struct jw *j, struct rope *to) {
    struct main_text value = {0};
    jw_key(j, "results");
    jw_array(j);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < s->n; i++) {
            if (s->outputs[i].is_main == (pass == 1))
                put_output(j, to, &s->outputs[i], &value);
        }
    }
    jw_array_end(j);
    jw_key(j, "text");
    if (value.len)
        put_part(j, to, value.text, value.at, value.len);
    else
        jw_null(j);
    blob_unref(value.text);
}
