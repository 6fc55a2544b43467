#pragma once
/* A server of its own for `cloche mcp`, gone with it.
 *
 * The keeper is a process that begins as a copy of the caller, before that one becomes another
 * program. They share a socket pair:
 *
 *     caller → keeper   once: words for `cloche serve`, each with a NUL at its end
 *     keeper → caller   once: "unix:PATH", the server's URL, or "!" and why there is none
 *     end of file       of the caller's end: the keeper takes the server down, removes its
 *                       directory and leaves; of the keeper's: all that is done
 *
 * So the server goes however the caller ends, by SIGKILL too. */

#include "base/err.h"

#define KEEPER_WORDS_MAX 65536 /* bytes of the one message */

/* *ret_fd is the caller's end; it stays open over exec. */
int keeper_start(int *ret_fd, struct err *e);
