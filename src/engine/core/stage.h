#pragma once
/* What comes before the first code in a sandbox: limits that differ from the ones it was made with,
 * its network, and the files it is given. Embedded in the guest. */

#include "base/err.h"
#include "config/config.h"
#include "engine/core/files.h"

#include <stdbool.h>
#include <stdint.h>

struct copy;
struct crew;
struct network_terms;
struct sandbox;

/* A file that is put into the workspace. */
struct input_file {
    char *path; /* owned: relative to the workspace */
    uint32_t mode;
    int fd;      /* owned: what to copy in; or -1, and */
    char *bytes; /* owned: these: a request has a thousand small files */
    uint64_t size;
};
#define INPUT_BYTES (64u << 10) /* of a small one, at most */

/* A directory of the host in the workspace. */
struct host_bind {
    char *allowed, *below, *path; /* owned; see I_BIND */
    bool writable;
};

struct stage {
    struct sandbox *sandbox; /* borrowed, as all of this */
    const struct limits *limits;
    const struct network_terms *network; /* or NULL */
    const char *tree;                    /* of its tenant's profile: see trees.h; or NULL */
    const struct host_bind *binds;
    unsigned nbinds, bound; /* so many are there */
    struct input_file *inputs;
    unsigned ninputs, at;
    bool waits_itself;   /* the guest's kernel can wait for /proc to tell the memory */
    bool unheard;        /* and has to: init was told, and nobody waits for its answer */
    unsigned waiting;    /* other answers that are still to come */
    struct file_ask ask; /* for the file at hand */
    struct copy *copy;   /* of it, beside the loop; or NULL */
    int to;              /* owned: where it goes */
    /* Once, and not from within stage_begin. */
    void (*done)(void *arg, const struct err *why);
    void *arg;
};

/* 1 when there is something to wait for, 0 when there is not, -1 with the reason. */
int stage_begin(struct stage *t, struct err *e);
/* Its guest is over; also when nothing was begun. */
void stage_done(struct stage *t);
/* Whoever gave the files may have deleted them meanwhile: large ones, and many, are freed beside
 * the loop. */
void inputs_close(struct crew *crew, struct input_file *inputs, unsigned n);
/* All of them. */
void inputs_free(struct input_file *inputs, unsigned n);
/* The control group's limits, where they are not the defaults. */
int stage_cgroup(const struct sandbox *s, const struct limits *l, bool all, struct err *e);
