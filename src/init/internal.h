#pragma once
/* What the parts of init share: see init.c. */

#include "init/binds.h"
#include "init/epolls.h"
#include "init/init.h"
#include "init/locks.h"
#include "init/network/network.h"
#include "init/pages.h"
#include "init/procs.h"
#include "init/sockets.h"
#include "init/watch.h"
#include "wire/codec.h"

/* Inodes of the tmpfs, which are memory of the kernel's: more only where there is more disk. */
static inline uint32_t disk_files(uint32_t disk_mb) {
    const uint32_t least = 20000, of_mb = 40;
    return disk_mb < least / of_mb ? least : disk_mb * of_mb;
}

struct init {
    struct init_plan plan;
    int req, hand, signals, workspace;
    int meminfo; /* the sandbox's own file, if its memory limit differs from the profile's; see
                    proc_memory */
    struct procs procs;
    struct watcher watcher;
    struct pages pages;
    struct sockets sockets;
    struct epolls epolls;
    struct locks locks;
    struct network network;
    struct binds binds;
    uint64_t window_ms, work_ms; /* when the window began, and our processor time then */
    bool told_of_use;            /* the server knows that the network may be in use */
    unsigned told_tasks;
    int left[WIRE_MAX_FDS]; /* owned: of the last message, if that was an I_LEFT */
    unsigned nleft;
};
