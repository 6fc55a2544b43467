#pragma once
/* What the operator wants, fully resolved: the command line parses flags, environment and file and
 * hands this to the warden and the server, neither of which reads JSON for it. Packed into a sealed
 * memfd (config_pack / config_unpack). */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define CONFIG_MAX_NAMED    16      /* profiles that the operator names */
#define CONFIG_MAX_PROFILES 32      /* and their twins for live kernels */
#define CONFIG_LIVE         "+live" /* a twin's name ends so */
#define CONFIG_MAX_LIST     64
#define CONFIG_MAX_STRING   4096
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
    uint32_t pool;              /* ready sandboxes to keep */
    uint32_t zygotes;           /* 0: as many as the cores want */
    uint32_t removed;           /* 1: gone from the configuration since the start */
    uint32_t live;              /* 1: its kernels stay: IPython is loaded */
    uint64_t stamp;             /* of what it is made of: another one, another interpreter */
};

struct config_limits {
    uint32_t timeout_ms, memory_mb, cpu_seconds, cpus_percent, pids, disk_mb, open_files;
    uint64_t output_bytes;
};

/* The HTTP service; nothing of it matters when `listeners` is 0. */
struct config_http {
    uint32_t listeners; /* sockets that the server is handed, behind the directories */
    char *mode;         /* on, off */
    char *host;         /* an address or a name */
    uint32_t port;      /* 0: any free one */
    char *also;         /* more HOST:PORT to listen on, with commas */
    char *unix_path;    /* of a socket to listen on as well, or "" */
    char *state_dir;    /* audit log, files, keys */
    char *file_dir;     /* of the stored files; "": below state_dir */
    char *keys;         /* the file of keys; "": keys.json in state_dir; the server gets its name */
    char *audit_code;   /* off, on: programs themselves are in the audit log */
    char *audit_dir;    /* where that is; "": in state_dir */
    char *audit_full;   /* refuse, allow: programs when it cannot be written */
    uint32_t audit_mb, audit_files; /* of one file; old ones that are kept */
    char *without_keys;             /* refuse, allow: listening to the network with no keys */
    char *hosts;                    /* names besides loopback's that it answers to, with commas */
    char *dialects;     /* the APIs of others that it speaks, with commas, the first one first */
    char *cors_origins; /* sites whose pages may use it, with commas; "*" is any */
    uint32_t max_connections, header_s, idle_s, drain_s;
    uint32_t pyrunner_timeout_s, pyrunner_memory_mb; /* what its programs may ask for */
    char *runtime_replies;                           /* of Sandbox Runtime: bare, legacy */
    uint32_t runtime_ttl_s, runtime_timeout_s;       /* of its sessions; of what runs */
    uint32_t runtime_memory_kb, runtime_pids;        /* of its handlers */
    uint32_t runtime_cpus_percent;                   /* of those and of sessions; 0: the usual */
    char *efast_url, *efast_allow, *efast_token;     /* where its sessions may download from */
    uint32_t efast_timeout_s;
    uint32_t jupyter_timeout_s, jupyter_idle_s, jupyter_cull_s; /* its cells and kernels; 0: none */
    char *jupyter_env;       /* variables of those kernels: a JSON object */
    char *jupyter_allow_env; /* names that a request may set besides KERNEL_…, with commas; or * */
    uint32_t bodies_mb;      /* bodies of requests under way, together */
    uint32_t idempotency_keys;              /* that are kept for one tenant */
    uint32_t reply_buffer_kb, replies_mb;   /* what waits for a slow reader; for all of them */
    uint32_t file_mb, file_ttl_s, files_mb; /* of one stored file; kept for; of all together */
};

struct config {
    char *socket;  /* path of the engine's socket */
    char *libexec; /* where our other programs are */
    char *pylib;   /* py/cell and the zygote module, copied into each root */
    char *id_user; /* whose line of /etc/subuid to use; "" is root's or cloche's, as found */
    char *minimum; /* layers without which nothing runs, space separated; see sandbox/probe.h */
    char *cgroup;  /* auto, v2, v1, none */
    char *policy_allow, *policy_deny; /* modules of the policy `restricted`, with commas */
    uint32_t log_level;
    char *log_format;                    /* logfmt, json, plain */
    uint32_t warden_restarts;            /* how often one had to be; not a setting */
    uint32_t max_sandboxes;              /* alive at once, ready ones included */
    uint32_t queue_max, queue_ms;        /* requests that may wait, and for how long */
    uint32_t memory_budget_mb;           /* of all programs under way together; 0: no bound */
    uint32_t terminals;                  /* that the programs of a sandbox may open */
    uint32_t zygote_forks, zygote_age_s; /* a zygote is replaced after so many forks or seconds */
    struct config_limits defaults, maxima;
    struct config_limits live;           /* of live sandboxes; timeout_ms is for one cell */
    uint32_t live_ttl_s, live_ttl_max_s; /* how long one lives, unless it asks; at most */
    uint32_t live_idle_s;                /* how long it may have nothing to do */
    uint32_t live_per_tenant;            /* 0: no bound */
    struct config_limits live_kernel;    /* of a further kernel that asks for none; 0: none */
    uint32_t live_grace_ms;              /* for a cell that was interrupted; then its kernel ends */
    struct config_http http;
    struct config_profile profiles[CONFIG_MAX_PROFILES];
    unsigned nprofiles;
};

/* What a sandbox's control group may hold: tmpfs is memory, and a full disk is to be ENOSPC before
 * it is out of memory, so the quotas of /workspace, /tmp and /dev/shm come on top. */
static inline uint64_t config_group_bytes(const struct config_limits *l) {
    return ((uint64_t)l->memory_mb + l->disk_mb) << 20;
}

/* What init gives a profile's sandboxes at birth; others are told their own before they are used.
 */
static inline const struct config_limits *config_born(const struct config *c,
                                                      const struct config_profile *p) {
    return p->live ? &c->live : &c->defaults;
}

/* What the server is handed besides its own three when there is HTTP. */
enum config_http_fd { HTTP_FD_STATE, HTTP_FD_FILES, HTTP_FD_KEYS, HTTP_FD_AUDIT, HTTP_FD_DIRS_ };
#define HTTP_MAX_LISTENERS 16
static inline unsigned config_http_fds(const struct config *c) {
    return c->http.listeners ? HTTP_FD_DIRS_ + c->http.listeners : 0;
}

void config_done(struct config *c);
/* Every text goes, and is overwritten: the nursery's heap is in every init. */
void config_keep_numbers(struct config *c);

/* Who gets how much of it, from least to all. SECURITY: secrets are the server's alone. A nursery
 * has one profile; of the others there are only their names. */
enum config_reader { CONFIG_NURSERY, CONFIG_WARDEN, CONFIG_SERVER };
struct config_part {
    enum config_reader reader;
    unsigned profile; /* of a nursery */
};
int config_pack(const struct config *c, const struct config_part *part, int *ret_fd, struct err *e);
/* Reads from the start whatever the descriptor's position, so that several processes can share it.
 * On failure *ret is empty. */
int config_unpack(int fd, struct config *ret, struct err *e);

/* The same on bytes in memory; for config_unpack and the fuzzer. */
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
