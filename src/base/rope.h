#pragma once
/* A long text put together from pieces that stay where they are: literal bytes, and bytes of a
 * program's that become the inside of a JSON string when they are read. Nothing is copied and
 * nothing is escaped before its turn comes: a reply of hundreds of megabytes is made a slice at a
 * time from what is kept anyway.
 *
 * The bytes of a piece are a blob: immutable, shared, and freed with its last reference. A rope is
 * read from its front, and lets go of what was read. */

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>

struct blob {
    unsigned refs, metered;
    struct buf bytes;
};
/* Takes the bytes; the caller's reference. */
struct blob *blob_take(struct buf *b);
struct blob *blob_ref(struct blob *b);
void blob_unref(struct blob *b);
/* One more, or one less, who counts its bytes in *meter: each blob counts once there. */
void blob_meter(struct blob *b, size_t *meter, bool more);

struct rope_piece {
    struct blob *of; /* owned: a reference */
    size_t from, len;
    bool is_text; /* to be escaped */
};
struct rope {
    struct rope_piece *pieces; /* owned */
    size_t first, n, cap;      /* `n` from `first` on */
    size_t bytes;              /* of all pieces, as they are kept */
    size_t *meter; /* borrowed, or NULL: the bytes of all blobs in such ropes, once each */
};
#define ROPE_INIT                                                                                  \
    { .pieces = NULL }
#define AUTO_ROPE __attribute__((cleanup(rope_done))) struct rope
void rope_done(struct rope *r);

/* Takes the bytes of the buffer, which is empty then. */
void rope_add(struct rope *r, struct buf *literal);
void rope_adds(struct rope *r, const char *literal);
/* Bytes of `of` as they are. */
void rope_add_part(struct rope *r, struct blob *of, size_t from, size_t len);
/* The same pieces once more. */
void rope_add_rope(struct rope *r, const struct rope *from);
/* Bytes of `of` as the inside of a JSON string. Where two of these meet, no character may be cut in
 * two: see rope_cut. */
void rope_add_text(struct rope *r, struct blob *of, size_t from, size_t len);
void rope_adds_text(struct rope *r, const char *text);
/* A key of a JSON object that `j` writes, and its value, a string of these texts one after the
 * other. What `j` has written so far goes to the rope; small texts stay with it. */
void rope_key_texts(struct rope *r, struct jw *j, const char *key, const struct rope *texts);
void rope_key_text(struct rope *r, struct jw *j, const char *key, struct blob *of);
/* The same with a value that is JSON already. */
void rope_key_json(struct rope *r, struct jw *j, const char *key, const struct rope *json);

/* Without its first bytes, which are of one literal piece. */
void rope_skip(struct rope *r, size_t bytes);
/* Moves about `most` bytes, ready for the client, from the front to the end of `to`. False when
 * nothing is left. */
bool rope_read(struct rope *r, size_t most, struct buf *to);

/* At most `want` bytes of the text, four or more, so that neither side of the cut has part of a
 * character. */
size_t rope_cut(const char *text, size_t len, size_t want);
