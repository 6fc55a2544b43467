#pragma once
/* A request about the files of a live sandbox, on its way through questions to its init: one at a
 * time. A sandbox may end between any two of them; it is looked up again each time. */

#include "api/core/call.h"
#include "engine/live/live.h"

struct wire_in;
struct wire_out;

struct box;
/* An answer, I_REPLY only; everything else has been replied to the client by then. */
typedef void box_fn(struct box *b, struct wire_in *in);
/* I_ERROR with this errno; true when that is dealt with. */
typedef bool box_error_fn(struct box *b, int errnum);

/* Embedded in the state of a call, as its first member. */
struct box {
    struct call *call;
    char *id;   /* owned: of the sandbox */
    char *path; /* owned: cleaned; "" is the workspace */
    struct live_watcher watcher;
    bool held, waiting;
    bool writes; /* a file is to be where the path says */
    bool begun;  /* the client has a part of its reply: what fails now cuts it */
    box_fn *then;
    box_error_fn *on_error; /* or NULL; set before each question */
    void (*on_done)(struct box *b);
    void (*on_gone)(struct box *b); /* or NULL: it ended under an upload, whose file is let go */
};

/* Makes `size` bytes of state, which begin with a box, for the sandbox and the path that the call
 * names, and gives them to the call. NULL when the client has its reply. on_done frees what the
 * rest of the state owns; it may be NULL. */
void *box_new(struct call *c, size_t size, void (*on_done)(struct box *b));
/* The same for a sandbox and a path that are named in another way. The path is taken as it is sent,
 * and cleaned. */
void *box_new_in(struct call *c, const char *id, const char *path, size_t size,
                 void (*on_done)(struct box *b));
/* NULL when it is gone; then the client has its reply. */
struct live *box_live(struct box *b);
/* The call goes on without it; it is freed. */
void box_leave(struct box *b);
/* Whether so much more may be written into it; false when the client has its reply. */
bool box_fits(struct box *b, uint64_t bytes);
/* A piece of a file without a name yet; likewise. `no_room` is said when the disk is full. */
bool box_write(struct box *b, int fd, const struct live_piece *p, const char *no_room);
void box_ask(struct box *b, const struct wire_out *o, box_fn *then);
/* The reply for what failed with an errno. */
void box_fail(struct box *b, int errnum, const char *why);
void box_disk_full(struct box *b, const char *why);
void box_bad_path(struct box *b, const char *why);

/* The records that the answer's descriptor holds; -1 when they make no sense. */
int box_records(struct wire_in *in, struct buf *ret);

/* Query parameters; false when the client has its reply. *ret stays when there is none. */
bool box_query_bool(struct box *b, const char *name, bool *ret);
bool box_query_u32(struct box *b, const char *name, uint32_t min, uint32_t max, uint32_t *ret);
/* Replies, and returns false. */
bool box_bad_value(struct box *b, const char *field, const char *allowed);
/* Octal, as "0644"; NULL is no text. */
bool box_mode(struct box *b, const char *text, uint32_t *ret);
