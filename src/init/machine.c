/* See machine.h. /proc/meminfo tells what is free and what processes, files and the kernel's own
 * tables have. The rest are pages that somebody in the kernel allocated for himself: drivers,
 * pipes, and the pages that sockets share (pages.c). Free pages that a processor keeps in a list of
 * its own, up to hundreds of megabytes, are listed in /proc/zoneinfo alone, which takes fifteen
 * times as long to read.
 *
 * A sandbox does not see these files (sandbox/proc.c). The nursery opens them, once, and its inits
 * inherit them: so what is read of them is read from its beginning, and whoever needs a place of
 * its own in one opens it anew. */

#include "init/machine.h"

#include "base/fd.h"
#include "init/watch_look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define OUT_OF_THE_WAY 150 /* of what init closes, and below what proc_mount leaves open */
#define TRIES          3
#define KEPT_LOOKS     8 /* quick looks between two at what processors keep */

void machine_open(int files[MACHINE_FILES]) {
    files[0] = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    files[1] = open("/proc/zoneinfo", O_RDONLY | O_CLOEXEC);
}

static int move_up(int fd) {
    return fd < 0 ? 0 : fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
}

void machine_begin(struct machine *m, const int files[MACHINE_FILES]) {
    m->meminfo = move_up(files[0]);
    m->zones = move_up(files[1]);
}

uint64_t machine_unlisted_of(const char *text, uint64_t *ret_total) {
    static const char *const listed[] = {
        "\nMemFree:",     "\nBuffers:",    "\nCached:",        "\nSwapCached:", "\nAnonPages:",
        "\nSlab:",        "\nPageTables:", "\nSecPageTables:", "\nPercpu:",     "\nKernelStack:",
        "\nVmallocUsed:", "\nHugetlb:",    "\nBalloon:"};
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof listed / sizeof *listed; i++)
        sum += watch_field(text, listed[i]);
    *ret_total = watch_field(text, "MemTotal:");
    return less(*ret_total, sum);
}

static uint64_t unlisted_and_kept(struct machine *m) {
    char text[8192];
    ssize_t n = m->meminfo > 0 ? pread(m->meminfo, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return 0;
    text[n] = 0;
    return machine_unlisted_of(text, &m->total);
}

static FILE *open_anew(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd > 0 ? fopen(path, "re") : NULL;
}

/* Free pages in the lists of processors. */
static uint64_t kept_bytes(struct machine *m) {
    char line[256];
    uint64_t pages = 0;
    unsigned long count;
    if (!m->zones_text && !(m->zones_text = open_anew(m->zones)))
        return 0;
    rewind(m->zones_text);
    while (fgets(line, sizeof line, m->zones_text)) {
        if (sscanf(line, " count: %lu", &count) == 1)
            pages += count;
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t machine_unlisted_about(struct machine *m) {
    uint64_t all = unlisted_and_kept(m);
    if (++m->looks % KEPT_LOOKS == 0)
        m->kept = kept_bytes(m);
    return less(all, m->kept);
}

/* The figures change while they are read: of a few tries the least is the nearest. */
uint64_t machine_unlisted(struct machine *m) {
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t all = unlisted_and_kept(m), one = less(all, m->kept = kept_bytes(m));
        least = one < least ? one : least;
    }
    return least;
}
