#pragma once
/* Directories of the host that the operator allows (bind_allow), and a sandbox gets when its server
 * asks for them: before any user code runs in it. */

#include "init/beneath.h"
#include "sandbox/root.h"
#include "wire/codec.h"
#include "wire/mounts.h"

struct binds {
    const struct root_mount *allowed; /* borrowed */
    int dirs[MOUNTS_MAX];             /* owned */
    unsigned n;
    int trees; /* owned: profiles of tenants; -1: there are none */
};
struct init_plan;

/* Before they are out of sight (root_private). */
int binds_open(struct binds *b, const struct init_plan *plan, struct err *e);
/* Their descriptors get numbers from `first` on. */
void binds_keep(struct binds *b, int first);
/* One of them, or a directory in it, at a new place of the workspace. */
int binds_mount(const struct binds *b, const struct i_bind *m, const struct place *at,
                struct err *e);
/* The tree of a tenant's profile, at ROOT_TREE. */
int binds_mount_tree(const struct binds *b, const char *id, struct err *e);
