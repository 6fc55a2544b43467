#pragma once
/* The file requests of the server, answered inside the sandbox's own mount namespace. */

#include "wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* False when the message is no such request. Otherwise `o` is I_REPLY or I_ERROR, and *ret_fd a
 * descriptor that it names, to be closed after sending; -1 if none. */
bool files_serve(struct wire_in *in, int workspace, uint32_t uid, struct wire_out *o, int *ret_fd);

void files_error(struct wire_out *o, int errnum, const char *what);
