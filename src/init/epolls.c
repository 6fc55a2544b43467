/* See epolls.h. Theory of operation. A file that wakes those who wait for it does so one after the
 * other, some 100 ns each, and a timer's file does it in the interrupt: nobody is charged, and no
 * other process runs there meanwhile (seen: 864,000 watches on one timer, 0.1 s at each tick). Many
 * files can have one queue of those who wait (a named pipe, the pidfds of a process), and one epoll
 * descriptor that watches another has the kernel look at all that is below it, with a mutex of the
 * whole machine held (epnested_mutex). So it is the watches of a sandbox that are bounded, all
 * together.
 *
 * The filter leaves EPOLL_CTL_ADD to us, and we let it go on and count it: that is judged by its
 * registers alone. How many watches have gone since then is not told to anybody; so when there seem
 * to be too many we look at all epoll descriptors, whose fdinfo lists what they watch. Init makes
 * these, so it has each of them too: at most EPOLLS_MAX, at numbers of their own.
 *
 * A descriptor that init has is not closed when the sandbox closes it. Which ones the sandbox still
 * has is found out in a look:
 *   1. each is watched by an epoll descriptor of ours, `lost`, and closed: that forgets a file that
 *      nobody has open;
 *   2. what is left there is looked for in the sandbox's tables, taken back and watched no more;
 *   3. what is not found there (it is in a message, or in a call that waits) stays lost: it has its
 *      place, and the count of watches stays as it was, for nobody knows how many it has.
 * It is not simply watched all the time: whoever adds to an epoll descriptor that is watched takes
 * the mutex above, and would wait for every neighbour who holds it.
 *
 * The kernel counts watches for the user who made the descriptor, so that is the sandbox's: init
 * changes its real uid for a moment. Only signals look at that, and PID 1 takes none from inside.
 */

#include "init/epolls.h"

#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WATCHES_MAX 4096
#define FIRST_FD    900 /* of ours: far above all others of init */
#define LOOK_NS     20000000u

/* Each line "tfd: N …" of the fdinfo of an epoll descriptor of ours is a watch; `each` is told of
 * N. */
static unsigned read_watches(int epoll, void (*each)(void *arg, int fd), void *arg) {
    char path[48], line[256];
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT32_MAX;
    while (fgets(line, sizeof line, f)) {
        int fd;
        if (sscanf(line, "tfd: %d", &fd) != 1)
            continue;
        n++;
        if (each)
            each(arg, fd);
    }
    fclose(f);
    return n;
}

unsigned epolls_watched(int epoll) {
    return read_watches(epoll, NULL, NULL);
}

static unsigned count_state(const struct epolls *l, enum epoll_state state) {
    unsigned n = 0;
    for (unsigned i = 0; i < EPOLLS_MAX; i++)
        n += l->state[i] == state;
    return n;
}

/* ---- a look: see above ---- */

static void note_lost(void *arg, int fd) {
    struct epolls *l = arg;
    if (fd >= FIRST_FD && fd < FIRST_FD + EPOLLS_MAX)
        l->state[fd - FIRST_FD] = EPOLL_LOST;
}

/* A sandbox can have made one that cannot be watched (ELOOP): that stays ours. */
static void lose_all(struct epolls *l) {
    for (int i = 0; i < EPOLLS_MAX; i++) {
        struct epoll_event none = {.events = 0};
        if (l->state[i] == EPOLL_LOST)
            l->state[i] = EPOLL_NONE; /* until it is seen again */
        if (l->state[i] != EPOLL_OURS || epoll_ctl(l->lost, EPOLL_CTL_ADD, FIRST_FD + i, &none) < 0)
            continue;
        close(FIRST_FD + i);
        l->state[i] = EPOLL_NONE;
    }
    read_watches(l->lost, note_lost, l);
}

/* It has the number that it was watched by, and no other file is to be found under it. */
static void take_back(struct epolls *l, int fd) {
    for (int i = 0; i < EPOLLS_MAX; i++) {
        if (l->state[i] != EPOLL_LOST || dup3(fd, FIRST_FD + i, O_CLOEXEC) < 0)
            continue;
        if (epoll_ctl(l->lost, EPOLL_CTL_DEL, FIRST_FD + i, NULL) == 0) {
            l->state[i] = EPOLL_OURS;
            return;
        }
        close(FIRST_FD + i);
    }
}

static bool is_over(const struct epolls *l, uint64_t until_ns) {
    return thread_cpu_ns() > until_ns || count_state(l, EPOLL_LOST) == 0;
}

static void search_table(struct epolls *l, pid_t pid, uint64_t until_ns) {
    char path[32], link[32];
    AUTO_FD process = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *ent; d && (ent = readdir(d)) && !is_over(l, until_ns);) {
        ssize_t len = readlinkat(dirfd(d), ent->d_name, link, sizeof link - 1);
        link[len < 0 ? 0 : len] = '\0';
        if (strcmp(link, "anon_inode:[eventpoll]") != 0)
            continue;
        AUTO_FD fd = (int)syscall(SYS_pidfd_getfd, process, (int)strtol(ent->d_name, NULL, 10), 0);
        if (fd >= 0)
            take_back(l, fd);
    }
    if (d)
        closedir(d);
}

/* SECURITY: a sandbox can have many descriptors. One that hides its epoll descriptors among them
 * has lost them. */
static void search_tables(struct epolls *l) {
    uint64_t until_ns = thread_cpu_ns() + LOOK_NS;
    DIR *d = opendir("/proc");
    for (struct dirent *ent; d && (ent = readdir(d)) && !is_over(l, until_ns);) {
        pid_t pid = (pid_t)strtol(ent->d_name, NULL, 10);
        if (pid > 1)
            search_table(l, pid, until_ns);
    }
    if (d)
        closedir(d);
}

static void look(struct epolls *l) {
    unsigned watches = 0;
    if (!l->made && (l->lost = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return;
    l->made = true;
    lose_all(l);
    search_tables(l);
    for (int i = 0; i < EPOLLS_MAX; i++) {
        unsigned n = l->state[i] == EPOLL_OURS ? epolls_watched(FIRST_FD + i) : 0;
        watches += n < WATCHES_MAX ? n : WATCHES_MAX;
    }
    if (count_state(l, EPOLL_LOST) == 0)
        l->watches = watches;
}

/* ---- the calls ---- */

static int free_place(struct epolls *l) {
    for (int i = 0; i < EPOLLS_MAX; i++) {
        if (l->state[i] == EPOLL_NONE)
            return i;
    }
    return -1;
}

static int make_one(struct epolls *l, uint32_t uid, int *ret_fd) {
    int place = free_place(l);
    if (place < 0) {
        look(l);
        place = free_place(l);
    }
    if (place < 0)
        return EMFILE;
    if (setresuid(uid, (uid_t)-1, (uid_t)-1) < 0)
        return errno;
    AUTO_FD fd = epoll_create1(EPOLL_CLOEXEC);
    int wrong = fd < 0 ? errno : 0;
    if (setresuid(0, (uid_t)-1, (uid_t)-1) < 0)
        _exit(1);
    if (wrong == 0 && dup3(fd, FIRST_FD + place, O_CLOEXEC) < 0)
        wrong = EMFILE;
    if (wrong)
        return wrong;
    l->state[place] = EPOLL_OURS;
    *ret_fd = fd_take(&fd);
    return 0;
}

/* epoll_create() has a size, which must be positive and means nothing else. */
void epolls_make(struct epolls *l, const struct caller *c, uint32_t uid) {
    AUTO_FD fd = -1;
    bool has_flags = c->nr == SYS_epoll_create1;
    uint32_t arg = (uint32_t)c->args[0];
    int wrong = has_flags ? arg & ~(uint32_t)EPOLL_CLOEXEC : (int32_t)arg <= 0;
    if (wrong)
        caller_answer(c, EINVAL);
    else if ((wrong = make_one(l, uid, &fd)))
        caller_answer(c, wrong);
    else
        caller_give(c, fd, has_flags && arg & EPOLL_CLOEXEC);
}

/* Those that were let go on and have not added yet are not seen by a look: one for each thread. */
void epolls_add(struct epolls *l, const struct caller *c) {
    if (l->watches >= WATCHES_MAX)
        look(l);
    if (l->watches >= WATCHES_MAX) {
        caller_answer(c, ENOSPC);
        return;
    }
    l->watches++;
    caller_go_on(c);
}
