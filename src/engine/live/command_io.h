#pragma once
/* What goes into a command and comes out of it: stdin, stdout, stderr or a terminal; for live/
 * only. */

struct command;

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
