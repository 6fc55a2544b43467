#pragma once
/* Profiles that tenants made over HTTP (src/api/profiles): a tree of files each, which is mounted
 * into a sandbox of one of the operator's profiles when that is given away, and nothing else. So
 * they have no pool, no nursery and no zygote: nothing of them runs before a kernel has given up
 * all that it has.
 *
 * Whoever makes them puts those that are whole into the engine's list. One that is taken out of it
 * stays until the last sandbox that sees its files is gone. */

#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct profile_pool;

struct tree {
    struct tree *next;
    struct engine *engine; /* borrowed */
    char id[48];           /* its directory: I_TREE */
    char *tenant, *name;   /* owned */
    char *profile;         /* owned: the operator's that its sandboxes are of */
    char *python;          /* owned: the version that it was built for, "3.11" */
    struct config_list env;
    struct limits limits; /* of what asks for nothing; 0: as its profile has it */
    unsigned users;       /* runs and live sandboxes */
    bool gone;            /* nobody finds it any more */
};

struct engine_trees {
    struct tree *first; /* owned */
    /* One that is gone has no user any more; it is freed after this. */
    void (*on_unused)(void *arg, const char *id);
    void *arg;
};

/* The list takes it. */
void trees_add(struct engine *g, struct tree *t);
/* That tenant's of that name; NULL: it has none. */
struct tree *trees_find(const struct engine *g, const char *tenant, const char *name);
/* Nobody gets it any more; it is freed when nobody has it. */
void trees_remove(struct tree *t);
/* One that a sandbox of an earlier server has, whether or not it is still in the list. */
struct tree *trees_inherit(struct engine *g, const char *id);
bool trees_has(const struct engine *g, const char *id);

struct tree *tree_use(struct tree *t);
void tree_leave(struct tree *t); /* or NULL */
void tree_free(struct tree *t);
/* Whether the pool's Python is that of the tree; kind "profile_broken". */
int tree_check(const struct tree *t, const struct profile_pool *p, struct err *e);
