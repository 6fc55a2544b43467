#pragma once
/* Live sandboxes outlive the server: see survivors.c. A slot has a struct survivor from the moment
 * that its live sandbox is made. */

#include "warden/warden.h"
#include "wire/codec.h"

/* N_MADE, N_KERNEL_MADE: keep the descriptors. */
void survivors_made(struct slot *s, const struct n_made *m, struct wire_in *in);
void survivors_kernel_made(struct slot *s, const struct n_kernel_made *m, struct wire_in *in);
/* W_KERNEL_MADE of a process; `fds` are borrowed. */
struct w_kernel_made survivors_kernel(const struct slot *s, uint32_t number, const int *fds);
/* The server has closed its end of the process's stdin, which is none while we have a copy. */
void survivors_shut(struct slot *s, uint32_t number);
/* `heard`: by a server. */
void survivors_exited(struct slot *s, uint32_t number, uint32_t status, bool heard);
/* Takes *journal. */
int survivors_keep(struct slot *s, int *journal, struct err *e);
/* Whether the sandbox goes on without its server. */
bool survivors_outlives(const struct slot *s);
void survivors_free(struct slot *s);
/* A server has just started: what an earlier one kept belongs to it now. */
void survivors_give(struct warden *w);
