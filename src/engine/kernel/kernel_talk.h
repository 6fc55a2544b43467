#pragma once
/* Messages to and from a kernel; for kernel/ only. */

#include "base/buf.h"

#include <stdbool.h>

struct json_t;
struct kernel;
struct live;
struct wire_in;

struct kernel_text {
    struct json_t *of; /* borrowed: a string, of which this part counts */
    size_t from, len;
    bool is_answer; /* to input() */
};
/* Sends the object that `json` holds. */
void kernel_do(struct kernel *k, const struct buf *json);
/* The same for one with a text in the middle, as a JSON string; may take what is in the buffers. */
void kernel_do_text(struct kernel *k, struct buf *head, const struct kernel_text *text,
                    struct buf *tail);
/* Of what is still to be said to the kernels of a sandbox. */
size_t kernel_telling_bytes(const struct live *l);
/* False when it has had too many answers that it does not read, and is given up. */
bool kernel_may_answer(struct kernel *k);
void kernel_on_frame(void *owner, struct wire_in *in);
/* Its process is over: what is on its way either way is nobody's. */
void kernel_untell(struct kernel *k);
void kernel_unhear(struct kernel *k);
/* What it said is still being read. */
bool kernel_is_heard(void *owner);
/* The sandbox is over: nobody pays any more for what is still being read. */
void kernel_unhear_all(struct live *l);
