#pragma once
/* What goes into a command and comes out of it: stdin, stdout, stderr or a terminal; for live/
 * only. */

#include "base/err.h"

#include <stddef.h>

struct command;
struct live;

/* Before the first of the others. */
void command_io_init(struct command *c);
void command_io_done(struct command *c);
void command_watch_output(struct command *c, int stream, int fd);
/* Writes what waits for its stdin, as far as that takes it. */
void command_pump_stdin(struct command *c);
/* Whoever follows it hears what it prints until now. */
void command_drain(struct command *c);
/* Before the descriptors are closed: the warden may hold them, too, and then closing ends no
 * watch. */
void command_stop_watching(struct command *c);

/* Whether so much more may wait for the commands of a sandbox. Kinds "stdin_full", "memory_budget".
 */
int command_stdin_fits(struct live *l, size_t len, struct err *e);
/* What its request has for its stdin. */
void command_stdin_text(struct command *c);
/* Nobody reads it any more. */
void command_drop_stdin(struct command *c);
