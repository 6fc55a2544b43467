#pragma once
/* What others do to a kernel is in kernels.h; this is for kernel/ only. */

#include "base/err.h"

struct kernel;
struct kernel_text;

/* Answers its input(); NULL: nobody does. */
int kernel_input(struct kernel *k, const struct kernel_text *text, struct err *e);
