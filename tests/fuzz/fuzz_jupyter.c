/* Any bytes as a message of Jupyter's, in each framing (the first byte says which): what is taken
 * lies within the frame, and said again in both framings it is the same. */

#include "api/dialects/jupyter/frame.h"

#include "base/fd.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void put(struct buf *to, const json_t *object) {
    AUTO_FREE char *text = json_is_object(object) ? json_dumps(object, JSON_COMPACT) : NULL;
    buf_adds(to, text ? text : "{}");
}

static struct jupyter_out *again(const struct jupyter_in *m) {
    struct jupyter_out *o = xcalloc(1, sizeof *o);
    o->channel = m->channel;
    memcpy(o->type, "t", 2);
    memcpy(o->id, "i", 2);
    o->header = o->parent = o->metadata = o->content = (struct buf)BUF_INIT;
    put(&o->header, m->header);
    buf_adds(&o->parent, "{}");
    put(&o->metadata, m->metadata);
    put(&o->content, m->content);
    o->buffers = xcalloc(m->nbuffers + 1, sizeof *o->buffers);
    for (; o->nbuffers < m->nbuffers; o->nbuffers++) {
        o->buffers[o->nbuffers] = (struct buf)BUF_INIT;
        buf_add(&o->buffers[o->nbuffers], m->buffers[o->nbuffers].data,
                m->buffers[o->nbuffers].len);
    }
    return o;
}

static void check_same(const struct jupyter_in *a, const struct jupyter_in *b) {
    must(strcmp(a->channel, b->channel) == 0 && strcmp(a->type, b->type) == 0);
    must(json_equal(a->content, b->content) && json_equal(a->header, b->header));
    must(a->nbuffers == b->nbuffers);
    for (unsigned i = 0; i < a->nbuffers; i++)
        must(a->buffers[i].len == b->buffers[i].len &&
             memcmp(a->buffers[i].data, b->buffers[i].data, a->buffers[i].len) == 0);
}

static void check_again(const struct jupyter_in *m, bool v1) {
    struct jupyter_in same;
    struct err e;
    struct jupyter_out *o = again(m);
    bool binary;
    const struct buf *frame = &jupyter_write(o, v1, &binary)->bytes;
    must(jupyter_read(frame->data, frame->len, binary, v1, &same, &e) == 0);
    check_same(m, &same);
    jupyter_in_done(&same);
    jupyter_out_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct jupyter_in m;
    struct err e;
    if (size < 1)
        return 0;
    bool binary = data[0] & 1, v1 = data[0] & 2;
    const char *from = (const char *)data + 1, *to = from + size - 1;
    if (jupyter_read(from, size - 1, binary, v1, &m, &e) < 0)
        return 0;
    must(m.type && m.id && json_is_object(m.content) && *m.channel);
    for (unsigned i = 0; i < m.nbuffers; i++)
        must(m.buffers[i].data >= from && m.buffers[i].len <= (size_t)(to - m.buffers[i].data));
    check_again(&m, false);
    check_again(&m, true);
    jupyter_in_done(&m);
    return 0;
}
