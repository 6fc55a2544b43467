#pragma once
/* What the kernel of a program says, and its end; for oneshot/ only. */

#include <stdbool.h>
#include <stdint.h>

struct run;
struct wire_in;

/* It has values and figures to show: RUN_SHOWN. */
bool run_shows(const struct run *r);
/* It begins: what it says counts as what others say and print. */
void run_hear_from(struct run *r);
/* It has not said that it is done, either. */
bool run_goes_on(const struct run *r);
/* What it waits for, unless it rests, or its reader is behind, or what it said is being read. */
void run_go_on(struct run *r);
/* A message of it is being read: it waits for that. */
bool run_is_heard(const struct run *r);
/* Nobody listens any more. */
void run_unhear(struct run *r);
/* Of its sandbox: see guest_kind. */
void run_on_frame(void *owner, struct wire_in *in);
void run_on_exited(void *owner, uint32_t number, int status);
