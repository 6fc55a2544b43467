#pragma once
/* What a kernel says of the cell that it runs; for kernel/ only.
 *
 * SECURITY: the kernel is hostile. Its word counts only about itself. */

struct cell;
struct said;

/* May take what is in it. */
void cell_event(struct cell *c, const char *name, struct said *s);
