#pragma once
/* Messages of Jupyter as frames of a WebSocket, in its two ways. Without a subprotocol a message is
 * a JSON object, as text; one with buffers is binary: numbers of 32 bits, big endian (how many
 * parts, where each begins), the JSON, the buffers. With the subprotocol below all is binary:
 * numbers of 64 bits, little endian (how many offsets, where each part begins and the last ends),
 * then the channel, four JSON objects (header, parent header, metadata, content), the buffers. */

#include "base/err.h"
#include "base/rope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JUPYTER_V1          "v1.kernel.websocket.jupyter.org"
#define JUPYTER_BUFFERS_MAX 256

struct jupyter_part {
    const char *data; /* borrowed */
    size_t len;
};

/* From a client. */
struct jupyter_in {
    char channel[16];
    json_t *all[5]; /* owned: what the rest is borrowed from */
    const json_t *header, *metadata, *content;
    const char *type, *id;                            /* of the header */
    struct jupyter_part buffers[JUPYTER_BUFFERS_MAX]; /* borrowed from the frame */
    unsigned nbuffers;
    /* what jupyter_prepare made of it */
    char *parent;       /* owned: its header, as JSON */
    struct buf members; /* of what the kernel is asked */
    struct buf shown;   /* the code, as the inside of a JSON string */
    uint8_t sha256[32]; /* of the code of a cell */
    bool is_too_long;   /* for a question */
};
/* 0, or -1 with kind "bad_message". `binary` is the frame's kind, `v1` the connection's. */
int jupyter_read(const void *data, size_t len, bool binary, bool v1, struct jupyter_in *ret,
                 struct err *e);
void jupyter_in_done(struct jupyter_in *m);

struct jupyter_client;

/* To clients. */
struct jupyter_out {
    struct jupyter_out *next;  /* of those that wait for one to come back, or are on their way */
    struct jupyter_client *to; /* borrowed: who alone gets it; or NULL */
    const char *channel;       /* a constant */
    char type[32], id[72];
    struct buf header, parent, metadata, content; /* JSON objects */
    struct buf *buffers;                          /* owned */
    unsigned nbuffers;
    struct blob
        *frames[2]; /* owned: as it goes over the wire, v1 second; when it is first wanted */
};
void jupyter_out_free(struct jupyter_out *m);
size_t jupyter_out_size(const struct jupyter_out *m);
/* The frame, borrowed, for all who get it; whether it is a binary one. */
struct blob *jupyter_write(struct jupyter_out *m, bool v1, bool *ret_binary);
