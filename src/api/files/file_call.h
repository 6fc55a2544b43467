#pragma once
/* A call about the files of a live sandbox: it asks one question after the other (see
 * engine/core/files.h) and replies. A sandbox may end between any two of them; it is looked up
 * again each time. */

#include "api/core/call.h"
#include "engine/live/live.h"

struct file_call;
/* The answer, to what went well; for anything else the client has its reply. */
typedef void file_call_fn(struct file_call *fc, struct file_answer *a);
/* It went wrong with this errno; true when that is dealt with. */
typedef bool file_call_error_fn(struct file_call *fc, int errnum);

/* Embedded in the state of a call, as its first member. */
struct file_call {
    struct call *call;
    char *id;   /* owned: of the sandbox */
    char *path; /* owned: cleaned; "" is the workspace */
    struct live_watcher watcher;
    struct file_ask ask;
    bool held;
    bool writes; /* a file is to be where the path says */
    bool begun;  /* the client has a part of its reply: what fails now cuts it */
    file_call_fn *then;
    file_call_error_fn *on_error; /* or NULL; set before each question */
    void (*on_done)(struct file_call *fc);
    /* Or NULL: the sandbox ended under an upload, whose file is let go. */
    void (*on_gone)(struct file_call *fc);
};

/* Makes `size` bytes of state, which begin with a struct file_call, for the sandbox and the path
 * that the call names, and gives them to the call. NULL when the client has its reply. on_done
 * frees what the rest of the state owns; it may be NULL. */
void *file_call_new(struct call *c, size_t size, void (*on_done)(struct file_call *fc));
/* The same for a sandbox and a path that are named in another way. The path is taken as it is sent,
 * and cleaned. */
void *file_call_new_in(struct call *c, const char *id, const char *path, size_t size,
                       void (*on_done)(struct file_call *fc));
/* NULL when it is gone; then the client has its reply. */
struct live *file_call_live(struct file_call *fc);
/* Another path, cleaned; false when it cannot be one, and the client has its reply. */
bool file_call_set_path(struct file_call *fc, const char *path);
/* The call goes on without it; it is freed. */
void file_call_leave(struct file_call *fc);
/* Whether so much more may be written into it; false when the client has its reply. */
bool file_call_fits(struct file_call *fc, uint64_t bytes);
/* A piece of a file without a name yet; likewise. `no_room` is said when the disk is full. */
bool file_call_write(struct file_call *fc, int fd, const struct file_piece *p, const char *no_room);
void file_call_ask(struct file_call *fc, const struct file_question *q, file_call_fn *then);
/* SECURITY: closes a file of the sandbox that may have no name any more. Whoever closes it last
 * frees all of it, which takes long: that is done beside the loop. */
void file_call_close(const struct file_call *fc, int *fd);
/* It waits for an answer. */
bool file_call_waits(const struct file_call *fc);
/* The reply for what failed with an errno. */
void file_call_fail(struct file_call *fc, int errnum, const char *why);
void file_call_disk_full(struct file_call *fc, const char *why);
void file_call_bad_path(struct file_call *fc, const char *why);

/* Query parameters; false when the client has its reply. *ret stays when there is none. */
bool file_call_query_bool(struct file_call *fc, const char *name, bool *ret);
bool file_call_query_u32(struct file_call *fc, const char *name, uint32_t min, uint32_t max,
                         uint32_t *ret);
/* Replies, and returns false. */
bool file_call_bad_value(struct file_call *fc, const char *field, const char *allowed);
/* Octal, as "0644"; NULL is no text. */
bool file_call_mode(struct file_call *fc, const char *text, uint32_t *ret);
