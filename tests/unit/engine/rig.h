#pragma once
/* An engine without a machine: the test plays the warden, the inits and the kernels, over socket
 * pairs, pipes and memory files.
 *
 * A test is a table of scripts. A script is words, read from the left: each is something that
 * happens to the engine. What the engine then does is noted in words, too: the messages that it
 * sends, by their names, and what its callbacks were told (rig_say). `expected` is all of that.
 *
 *     {"a dead one is replaced", "profile made up down", "W_MAKE W_END W_MAKE"}
 *
 * Words that every script knows; the sandbox at hand is the last one that was made, or the one that
 * box=N chose, likewise the process in it (process=N):
 *
 *   profile  broken        the profile is ready; it is not, and will not be
 *   made  failed           the warden made a sandbox; could not
 *   more  no-more          the warden made one more process, of which it was asked last; could not
 *   more=N                 the same, with a number that nobody asked for
 *   up  unfit  down        the kernel is ready; says that it cannot be; closes its socket
 *   exit=N  killed=N       the process ended, with this code or of this signal
 *   gone                   all of the sandbox is dead
 *   out=TEXT  err=TEXT     the process prints
 *   say={JSON}             the kernel says that; ID stands for the id of what it was last asked,
 *                          CELL for that of the last cell
 *   reply  error  file=TEXT  init answers the oldest question; with a file that holds this
 *   changed=PATH           init answers with this list of changed files
 *   denied  limit=N        init tells that something was refused, or which limit was met
 *   nonsense               init sends half a message
 *   oom  pids              the control group counts a kill, or a refused process
 *   cpu=US                 processor time that the control group has counted
 *   net  no-route=N        init tells of a socket; packets that found no way out of the sandbox
 *   prints=N               the process prints a byte, N times
 *   cost=MS                from now on whatever the engine measures costs that much of its own
 *                          processor time
 *   settled                all that an earlier server kept is here
 *
 * Time stands still: a test's own words let it pass until a timer is due (rig_fire). */

#include "engine/core/engine.h"
#include "engine/core/sandbox.h"

#include <stdbool.h>
#include <stddef.h>

#define RIG_SANDBOXES 8
#define RIG_PROCESSES 8

struct rig_process {
    uint32_t number;
    int fds[4];     /* the engine's ends, as the warden keeps them: ctl, stdin, stdout, stderr */
    int peer[4];    /* ours; -1 when closed */
    char asked[64]; /* the id of the last request that the kernel got */
    char cell[64];  /* and of the last one to execute something */
};

struct rig_sandbox {
    uint64_t id;
    uint32_t profile, slot;
    int fds[SANDBOX_FDS_]; /* the engine's ends; those of the first process are there, too */
    int req;               /* ours */
    int cgroup[KNOBS_];
    struct rig_process processes[RIG_PROCESSES]; /* the first one first */
    unsigned nprocesses;
    uint32_t wanted; /* the number of the process that was last asked for */
    int journal;     /* -1: it is not kept */
    bool is_gone;
};

struct rig {
    struct loop *loop;
    struct engine *engine;
    int warden; /* our end */
    uint32_t profile;
    bool no_groups, old;
    bool is_storm; /* anything may come at any time: who is not there any more gets nothing */
    struct rig_sandbox sandboxes[RIG_SANDBOXES];
    unsigned nsandboxes, at, process;
    char said[4096];
    /* A word that is the test's own; false: it is nobody's. */
    bool (*word)(struct rig *r, const char *word, const char *value);
    void *test;
};

struct rig_case {
    const char *name, *script, *expected;
};

/* Of two profiles: 0 is "base", 1 is its live twin. Pools hold nothing unless a test wants it. */
struct config rig_config(void);
void rig_init(struct rig *r, const struct config *c);
void rig_done(struct rig *r);
/* The server dies and another one starts; what was kept is handed to it. */
void rig_restart(struct rig *r, const struct config *c);

/* Plays the script, and fails when something else was said. */
void rig_play(struct rig *r, const struct rig_case *c);
/* One word of those above, and what follows from it. */
void rig_play_word(struct rig *r, const char *word);
/* Notes a word. */
void rig_say(struct rig *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What is on its way arrives, in both directions. */
void rig_settle(struct rig *r);
/* Time passes until the timer is due; it must have been set. */
void rig_fire(struct rig *r, struct timer *t);
/* What the engine measures of its own processor time costs so much from now on; 0: what it does. */
void rig_set_cost(uint64_t ns);
struct rig_sandbox *rig_sandbox(struct rig *r);
struct rig_process *rig_process(struct rig *r);
/* The text of a control group's file. */
void rig_cgroup(struct rig *r, enum cgroup_knob knob, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
