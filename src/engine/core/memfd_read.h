#pragma once
/* Bytes that a hostile process sent in a descriptor. */

#include "base/buf.h"

/* All of a file of memory with 1 to `max` bytes; -1 for anything else. Borrows the descriptor. */
int memfd_read(int fd, size_t max, struct buf *ret);
