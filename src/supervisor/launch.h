#pragma once
/* Starts the warden and sees it end. Used by `serve` and by `run` for its private engine.
 *
 * The warden finds: 3 the packed configuration, 4 the listening socket, 5 the life line (read end:
 * at its end of file the warden takes everything down and leaves; L_CONFIG comes through it), 6 the
 * ready pipe (write end: lines of text, see below). Its stdin is /dev/null, its stdout is our
 * stderr, it has a session of its own (a Ctrl-C at the terminal is ours to pass on), and of the
 * environment only what it may need.
 *
 * Lines on the ready pipe: "listening", "profile NAME ready (VERSION)", "profile NAME broken: WHY",
 * the same of its live half ("live NAME …"), "problem WHY" before it leaves with WARDEN_CANNOT. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define WARDEN_CANNOT 3 /* exit status: configuration or machine; starting again is no use */

struct config;

struct warden {
    pid_t pid;
    int pidfd; /* readable once it has ended */
    int life;  /* our end of a pair; closing it ends the engine */
    int ready; /* read end */
};
#define WARDEN_INIT                                                                                \
    { .pid = -1, .pidfd = -1, .life = -1, .ready = -1 }

/* http_fds: config_http_fds(c) of them, handed on to the server: the directories, then the
 * listening sockets. */
int warden_start(const struct config *c, int listen_fd, const int *http_fds, struct warden *ret,
                 struct err *e);
/* Asks it to finish what runs and to leave. Ends when it has, when another signal comes on the
 * signalfd, or after so long; true when it has left. */
bool warden_drain(const struct warden *w, int signals, int within_ms);
/* New profiles, for a warden that runs. */
int warden_tell(const struct warden *w, const struct config *c, struct err *e);
/* After its end: reaps it and returns its wait status; sweeps if it did not leave in order. */
int warden_reap(struct warden *w, const struct config *c);
/* Closes the life line, waits (and kills what will not go), reaps; returns the wait status. What
 * the ready pipe still held is appended to `words` unless that is NULL. Accepts WARDEN_INIT. */
int warden_stop(struct warden *w, const struct config *c, struct buf *words);
/* Appends what the ready pipe holds. 1 when there was something, 0 at the end of file. */
int warden_read(struct warden *w, struct buf *to);
