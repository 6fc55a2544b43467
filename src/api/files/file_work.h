#pragma once
/* Work on files for a call, beside the loop: see loop/crew.h. It is done a slice at a time, and
 * between two slices the loop has it: it does what only the loop may do, and says whether there is
 * another one. The sandbox pays for all of it.
 *
 * What the slices touch is an object of its own, which begins with a struct file_work. It belongs
 * to the call while the loop has it. While a slice is at work, nobody else touches it; so a call
 * that ends meanwhile leaves it behind, and it is freed after the slice. */

#include "api/core/shares.h"
#include "api/files/file_call.h"
#include "loop/crew.h"

#include <stdatomic.h>

struct file_work {
    struct share_item place; /* among the tenant's, until it is freed; with its bytes on disk */
    struct work work;
    struct file_call *fc; /* borrowed; NULL when the call is over */
    atomic_bool is_left;  /* the same, for the slice */
    bool is_beside;       /* a slice is to come, or at work */
    bool is_over;         /* the next slice frees what it owns */
    uint64_t began_ns;    /* the slice at work */
    uint64_t cpu_ns;      /* that the last slice took */
    struct api *api;      /* borrowed, as is the crew */
    struct crew *crew;
    char tenant[65], sandbox[ID_MAX]; /* who pays */
    void (*slice)(struct file_work *w);
    void (*then)(struct file_call *fc); /* in the loop; not when the client has its reply */
    void (*empty)(struct file_work *w); /* beside the loop */
};

/* Makes `size` bytes, the rest of them zero. The three functions, and whether slices are long, are
 * as in `how`. NULL when the tenant has too many already: the client has its reply. */
void *file_work_new(struct file_call *fc, size_t size, const struct file_work *how);
/* One slice more. */
void file_work_go(struct file_work *w);
/* For a slice: whether it may go on. */
bool file_work_has_time(const struct file_work *w);
/* Whether it may keep so much more in a file of the store's directory, which counts until it is
 * freed; kind "disk_full". */
int file_work_spool(struct file_work *w, uint64_t bytes, struct err *e);
/* What all calls for its sandbox keep there. */
uint64_t file_work_spooled(const struct file_work *w);
/* The call goes on without it, or is over; `w` may be NULL. */
void file_work_leave(struct file_work *w);
