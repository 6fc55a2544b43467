#pragma once
/* All live sandboxes of an engine, and who hears of them. */

#include <stdbool.h>
#include <stdint.h>

struct cell;
struct command;
struct engine;
struct gone;
struct live;
struct live_shared;

/* Who takes up what an earlier server began; `number` is that of the last event that it may have
 * told. Either may be NULL. */
struct live_heir {
    void *arg;
    void (*cell)(void *arg, struct live *l, struct cell *c, uint64_t number);
    void (*command)(void *arg, struct live *l, struct command *c, uint64_t number);
};

struct lives {
    struct live_shared *shared; /* owned: what they have together */
    struct live *first;         /* oldest first; those that wait for a sandbox before them */
    struct gone *gone;          /* owned: those that were */
    struct live_heir heir;
    /* Processor time that a live sandbox has used outside of its executions; or NULL. */
    void (*on_cpu_account)(void *arg, const char *payer, double cpu_seconds);
    void *cpu_account_arg;
    /* A command is over, whoever waits for that; or NULL. */
    void (*on_command)(void *arg, const struct live *l, const struct command *c);
    void *command_arg;
};

/* From here on the engine has live sandboxes. `state_dir` is borrowed: where is remembered which
 * there were; -1: nowhere. */
void lives_init(struct engine *g, int state_dir);

/* For live/ only: its place among the others, by when it was created. */
void lives_join(struct live *l);
void lives_leave(struct live *l);
