#pragma once
/* User and group id ranges of a user namespace.
 *
 * A range comes from /etc/subuid and /etc/subgid (the line of a named user or its uid). Root writes
 * the maps itself; an ordinary user has newuidmap and newgidmap (package uidmap) do it. Without a
 * range there is one id: an ordinary user's own, or nobody's where we are root. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct idmap {
    bool single;       /* one id only */
    bool helper;       /* newuidmap and newgidmap write the maps */
    uint32_t uid, gid; /* first outside id; inside it is 0 */
    uint32_t count;    /* ids from there on; 1 when single */
    char why[240]; /* single or odd: why there is no good range, and the command that gives one */
    char odd[120]; /* what is wrong with a range that is there: others have its ids too; or "" */
};

/* `user` is a name whose range to take, or "" for: the one we run as, and for root also "cloche".
 * The two ranges are cut to the shorter. Fails only on files that cannot be read or make no sense.
 */
int idmap_find(const char *user, struct idmap *ret, struct err *e);

/* For tests: the same with the two files' text. `uid` and `name` are the identity looked for. */
int idmap_find_in(const char *subuid, const char *subgid, const char *name, uid_t uid,
                  struct idmap *ret, struct err *e);

/* Part k of n of a range (each nursery has ids of its own); with too few ids the whole is single.
 */
struct idmap idmap_part(const struct idmap *m, unsigned k, unsigned n);
