#pragma once
/* The file requests of the server, answered inside the sandbox's own mount namespace. */

#include "wire/wire.h"

#include <stdint.h>

/* Both fill `o` with I_REPLY or I_ERROR. *ret_fd is a descriptor that `o` names, to be closed after
 * sending; -1 if none. */
void files_open(struct wire_in *in, int workspace, uint32_t uid, struct wire_out *o, int *ret_fd);
void files_changes(struct wire_in *in, int workspace, struct wire_out *o, int *ret_fd);

void files_error(struct wire_out *o, int errnum, const char *what);
