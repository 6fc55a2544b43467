#pragma once
/* Profiles that tenants have of their own: made by POST /v1/profiles, built in a sandbox (build.h),
 * kept on the shelf (shelf.h), given to sandboxes by the engine (engine/core/trees.h). For api/
 * only. */

#include "api/core/call.h"

struct build;
struct crew;
struct own_profile;
struct own_profiles;

enum own_state { OWN_BUILDING, OWN_READY, OWN_BROKEN };

struct own_profile {
    struct own_profile *next;
    struct own_profiles *all; /* borrowed */
    enum own_state state;
    char id[ID_MAX];
    char *tenant, *name; /* owned */
    json_t *about;       /* owned: what shelf.h keeps */
    struct tree *tree;   /* borrowed: the engine's, when it is ready */
    struct build *build; /* borrowed while there is one */
    char record[ID_MAX]; /* of its build, for as long as records are kept */
    char why[300];       /* it is broken */
};

struct own_profiles {
    struct api *api;   /* borrowed */
    int dir;           /* borrowed: of the shelf */
    struct crew *crew; /* owned: what waits for a disk waits there, and holds up no other work */
    struct own_profile *first;
    unsigned builds;
};

/* Those that are there. */
int own_open(struct api *a, int dir, struct err *e);
/* What an earlier server's sandboxes have is known by now. */
void own_settled(struct api *a);

/* That tenant's of that name, or NULL. */
struct own_profile *own_find(const struct api *a, const char *tenant, const char *name);
/* The tenant's, one after the other: the one after `last`, or the first. */
struct own_profile *own_next(const struct api *a, const char *tenant,
                             const struct own_profile *last);
/* What so many bytes in so many files count for. */
uint64_t own_size(uint64_t bytes, uint64_t files);
/* What the tenant's take of the disk, and how many there are. */
uint64_t own_bytes(const struct api *a, const char *tenant);
unsigned own_count(const struct api *a, const char *tenant);

/* One that is being built; takes `about`. */
struct own_profile *own_add(struct api *a, const char *tenant, const char *name, json_t *about);
/* Its files are whole. */
int own_ready(struct own_profile *p, struct err *e);
void own_broken(struct own_profile *p, const char *why);
/* Of the tenant's broken ones all but the latest go, to leave room for another. */
void own_spare(const struct api *a, const char *tenant);
/* It is none any more, whoever uses it. */
int own_remove(struct own_profile *p, struct err *e);
/* Sandboxes that see its files. */
unsigned own_users(const struct own_profile *p);

/* The object of the API. */
#define OWN_FIELDS                                                                                 \
    MAY_HAVE("own", FIELD_BOOL, .help = "true: this tenant's, made over HTTP; and it has"),        \
        MAY_HAVE("from", FIELD_STRING, .help = "the profile that its sandboxes are of"),           \
        MAY_HAVE("requirements", FIELD_LIST, .help = "what was asked for"),                        \
        MAY_HAVE("installed", LIST_OF(own_package_schema),                                         \
                 .help = "what that led to; not in lists"),                                        \
        MAY_HAVE("bytes", FIELD_INT, .help = "what it takes of tenant_profiles_mb"),               \
        MAY_HAVE("created", FIELD_REAL, .help = "unix time"),                                      \
        MAY_HAVE("users", FIELD_INT, .help = "sandboxes that have it")
extern const struct schema own_package_schema;
/* The profile of the engine that its sandboxes are of; config.nprofiles: there is none. */
unsigned own_base(const struct own_profile *p);
/* The members that OWN_FIELDS names. SECURITY: a build may say that it installed thousands, and a
 * tenant has several: lists are without them. */
void own_put(struct jw *j, const struct own_profile *p, bool in_list);
