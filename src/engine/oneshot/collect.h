#pragma once
/* What comes after a program ended; for oneshot/ only. */

#include "engine/core/sandbox.h"

struct run;

void run_collect(struct run *r);
/* What is known when nobody answers. */
void run_measure(struct run *r);
/* The outcome is whole: there is a result, or there will be none. Where nobody knows what it used,
 * that is the wall clock, on all its processors. */
void run_settle(struct run *r);
/* Asks init for what it used, where only init knows. */
void run_ask_usage(struct run *r);
void run_take_usage(struct run *r, struct wire_in *in);
void run_collect_answer(struct run *r, enum asked what, struct wire_in *in);
void run_collect_done(struct run *r);
