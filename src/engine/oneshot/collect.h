#pragma once
/* What comes after a program ended; for oneshot/ only. */

#include "engine/core/sandbox.h"

struct run;

void run_collect(struct run *r);
/* What is known when nobody answers. */
void run_measure(struct run *r);
/* For whoever knows no better: the wall clock, on all its processors. */
uint64_t run_cpu_us(const struct run *r);
/* Asks init for what it used, where only init knows. */
void run_ask_usage(struct run *r);
void run_take_usage(struct run *r, struct wire_in *in);
void run_collect_answer(struct run *r, enum asked what, struct wire_in *in);
void run_collect_done(struct run *r);
