#pragma once
/* The processes in a nursery's sandboxes: see kernels.c. */

#include "nursery/nursery.h"
#include "wire/codec.h"

/* Keeps the cgroup.procs files. */
struct kernel *kernels_add(struct box *b, uint32_t number, const struct wire_fds *procs,
                           struct wire_in *in);
/* N_KERNEL; `b` is NULL when there is no such sandbox. */
void kernels_more(struct nursery *n, struct box *b, const struct n_kernel *m, struct wire_in *in);
/* An answer of init's is here: true if it was for a kernel that waits for its ends. */
bool kernels_ends(struct box *b, struct wire_in *in);
struct kernel *kernels_find(struct nursery *n, uint64_t id, uint32_t number);
/* It is there: its owner's ends go to the warden. */
void kernels_forked(struct kernel *k, pid_t pid);
/* Frees it, unless its box dies of it. */
void kernels_failed(struct kernel *k, const char *why);
/* Frees it. */
void kernels_exited(struct kernel *k, int status);
void kernels_close(struct kernel *k);
void kernels_free(struct box *b);
