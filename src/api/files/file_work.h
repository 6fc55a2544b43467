#pragma once
/* Work on files for a call, beside the loop: see loop/crew.h. It is done a slice at a time, and
 * between two slices the loop has it: it does what only the loop may do, and says whether there is
 * another one. The sandbox pays for all of it.
 *
 * What the slices touch is an object of its own, which begins with a struct file_work. It belongs
 * to the call while the loop has it. While a slice is at work, nobody else touches it; so a call
 * that ends meanwhile leaves it behind, and it is freed after the slice. */

#include "api/files/file_call.h"
#include "loop/crew.h"

#include <stdatomic.h>

struct file_work {
    struct work work;
    struct file_call *fc; /* borrowed; NULL when the call is over */
    atomic_bool is_left;  /* the same, for the slice */
    bool is_beside;       /* a slice is to come, or at work */
    bool is_over;         /* the next slice frees what it owns */
    uint64_t began_ns;    /* the slice at work */
    uint64_t cpu_ns;      /* that the last slice took */
    struct crew *crew;    /* borrowed, as is the engine */
    struct engine *engine;
    char tenant[65], sandbox[ID_MAX]; /* who pays */
    void (*slice)(struct file_work *w);
    void (*then)(struct file_call *fc); /* in the loop; not when the client has its reply */
    void (*empty)(struct file_work *w); /* beside the loop */
};

/* Makes `size` bytes, the rest of them zero. The three functions are as in `how`. */
void *file_work_new(struct file_call *fc, size_t size, const struct file_work *how);
/* One slice more. */
void file_work_go(struct file_work *w);
/* For a slice: whether it may go on. */
bool file_work_has_time(const struct file_work *w);
/* The call goes on without it, or is over; `w` may be NULL. */
void file_work_leave(struct file_work *w);
