#pragma once
/* What another server answers to one request (HTTP/1.1, or 1.0), in whatever pieces it comes:
 * read as strictly as we read requests, since it is passed on to a client of ours. One connection
 * has one answer. */

#include "base/buf.h"
#include "http/framing.h"

#define ANSWER_HEAD_MAX (32u << 10) /* bytes of a head, and of all interim ones together */
#define ANSWER_FIELDS   100
#define ANSWER_LISTED                                                                              \
    1024 /* bytes of its Connection headers: each other one is looked up there                     \
          */
#define ANSWER_LENGTH_NONE UINT64_MAX

enum answer_state {
    ANSWER_HEAD,
    ANSWER_BODY,
    ANSWER_WHOLE,    /* nothing more is read */
    ANSWER_SWITCHED, /* 101: what follows is no HTTP */
    ANSWER_WRONG,    /* see `wrong` */
};

struct answer_field {
    const char *name, *value; /* borrowed from the head */
};

struct answer {
    void *arg;
    void (*on_head)(void *arg, const struct answer *a); /* once: the final one, or 101 */
    void (*on_data)(void *arg, const char *data, size_t len);
    bool to_head, may_switch; /* the request was HEAD; it asked for another protocol */
    /* what was read */
    enum answer_state state;
    const char *wrong;
    int status;
    struct answer_field fields[ANSWER_FIELDS];
    unsigned nfields;
    uint64_t length; /* that the head says; or ANSWER_LENGTH_NONE */
    /* the rest is its own */
    struct buf head;
    size_t scanned, interim;
    bool is_1_0, chunked, to_end;
    uint64_t left;
    struct framing chunks;
};

#define ANSWER_INIT                                                                                \
    { .head = BUF_INIT, .length = ANSWER_LENGTH_NONE }

/* How many bytes belonged to the answer: all, unless it is whole, switched or wrong. */
size_t answer_add(struct answer *a, const char *data, size_t len);
/* The server sends no more: then the answer is whole or wrong. */
void answer_end(struct answer *a);
/* The first field of that name; or NULL. */
const char *answer_field(const struct answer *a, const char *name);
/* Whether one of the fields of that name lists the word. */
bool answer_lists(const struct answer *a, const char *name, const char *word);
void answer_done(struct answer *a);
