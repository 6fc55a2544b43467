#pragma once
/* What the operator wants, fully resolved: the command line parses flags, environment and files and
 * hands each process its part, none of which reads JSON for it. Packed into a sealed memfd
 * (config_pack / config_unpack). */

#include "base/buf.h"
#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_MAX_NAMED    16      /* profiles that the operator names */
#define CONFIG_MAX_PROFILES 32      /* and their twins for live kernels */
#define CONFIG_LIVE         "+live" /* a twin's name ends so */
#define CONFIG_MAX_LIST     64
#define CONFIG_MAX_STRING   4096
#define CONFIG_MAX_RULES    32768      /* of a text that is rules of the network */
#define CONFIG_MAX_BYTES    (1u << 20) /* of the packed form */

struct config_list {
    char **items; /* owned, as the strings are */
    unsigned n;
};

struct config_profile {
    char *name;                 /* [a-z0-9_-]{1,32}, of a twin with CONFIG_LIVE behind */
    char *python;               /* absolute path of the interpreter */
    struct config_list sites;   /* directories put on sys.path, and bound read-only */
    struct config_list preload; /* modules imported in the zygote */
    struct config_list binds;   /* extra read-only paths */
    struct config_list mounts;  /* host directories in the workspace: see wire/mounts.h */
    struct config_list allowed; /* those that a request may ask for */
    struct config_list env;     /* NAME=VALUE of all its programs */
    struct limits limits;       /* where its programs get other ones than all; 0: as all */
    uint32_t pool;              /* ready sandboxes to keep */
    uint32_t zygotes;           /* 0: as many as the cores want */
    uint32_t removed;           /* 1: gone from the configuration since the start */
    uint32_t live;              /* 1: its kernels stay: IPython is loaded */
    uint64_t stamp;             /* of what it is made of: another one, another interpreter */
};

/* The settings, and a few fields besides: settings.def is where they are. Another API's are in its
 * own member: config.jupyter. Strings are owned, and never NULL once the configuration is resolved
 * or unpacked. */
#define CONFIG_C_PATH            char *
#define CONFIG_C_TEXT            char *
#define CONFIG_C_SECRET          char *
#define CONFIG_C_ENV             char *
#define CONFIG_C_MODULES         char *
#define CONFIG_C_RULES           char *
#define CONFIG_C_SETS            char *
#define CONFIG_C_CHOICE(words)   char *
#define CONFIG_C_SOME(words)     char *
#define CONFIG_C_LEVEL           uint32_t
#define CONFIG_C_NUM(min, max)   uint32_t
#define CONFIG_C_CORES(min, max) uint32_t
#define CONFIG_C_LONG(min, max)  uint64_t
/* clang-format off */
struct config {
#define SETTING(reader, member, name, type, ...) CONFIG_C_##type member;
#define FIELD(reader, type, member)              CONFIG_C_##type member;
#define LIMITS_OF(reader, member)                struct limits member;
#define GROUP(name)                              struct config_##name {
#define GROUP_END(name)                          } name;
#include "config/settings.def"
    struct config_profile profiles[CONFIG_MAX_PROFILES];
    unsigned nprofiles;
};
/* clang-format on */

/* Places for sandboxes: one whose memory somebody holds when it has ended takes its place as long,
 * so there are more of them than there are sandboxes. */
#define CONFIG_MORE_PLACES 256
static inline unsigned config_places(const struct config *c) {
    return c->max_sandboxes + CONFIG_MORE_PLACES;
}

/* What a sandbox's control group may hold: tmpfs is memory, and a full disk is to be ENOSPC before
 * it is out of memory, so the quotas of /workspace, /tmp and /dev/shm come on top. */
static inline uint64_t config_group_bytes(const struct limits *l) {
    return ((uint64_t)l->memory_mb + l->disk_mb) << 20;
}

/* What a profile's programs get that ask for nothing, and what init gives its sandboxes at birth.
 */
static inline struct limits config_born(const struct config *c, const struct config_profile *p) {
    return limits_over(p->live ? &c->live : &c->defaults, &p->limits);
}

/* What the server is handed besides its own three when there is HTTP. */
enum config_http_fd {
    HTTP_FD_STATE,
    HTTP_FD_FILES,
    HTTP_FD_KEYS,
    HTTP_FD_AUDIT,
    HTTP_FD_TREES, /* the state directory where tenants make no profiles */
    HTTP_FD_DIRS_
};
#define HTTP_MAX_LISTENERS 16
static inline unsigned config_http_fds(const struct config *c) {
    return c->http.listeners ? HTTP_FD_DIRS_ + c->http.listeners : 0;
}

void config_done(struct config *c);
/* Every text goes, and is overwritten: the nursery's heap is in every init. */
void config_keep_numbers(struct config *c);

/* Who gets how much of it, from least to all: each what the one before it gets, and more. SECURITY:
 * secrets are the server's alone. A nursery has one profile, and of the others only their names;
 * the gate has none. CONFIG_CLI is the command line, which is where it all comes from. */
enum config_reader { CONFIG_GATE, CONFIG_NURSERY, CONFIG_WARDEN, CONFIG_SERVER, CONFIG_CLI };
struct config_part {
    enum config_reader reader;
    unsigned profile; /* of a nursery */
};
int config_pack(const struct config *c, const struct config_part *part, int *ret_fd, struct err *e);
/* Reads from the start whatever the descriptor's position, so that several processes can share it.
 * On failure *ret is empty. */
int config_unpack(int fd, struct config *ret, struct err *e);

/* The same on bytes in memory, with all that there is; for config_unpack, for comparing two, and
 * for the fuzzer. */
void config_encode(const struct config *c, struct buf *to);
int config_decode(const void *data, size_t len, struct config *ret, struct err *e);

/* What an operator may call a profile. */
bool config_name_is_good(const char *profile_name);
/* The twin of a profile: the one for live kernels, or that one's own; nprofiles if there is none.
 */
unsigned config_twin(const struct config *c, unsigned i);
/* How many of the first n profiles are no twins. */
unsigned config_named(const struct config *c, unsigned n);
bool config_profile_same(const struct config_profile *a, const struct config_profile *b);
