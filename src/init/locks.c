/* See locks.h. Theory of operation. A lock is kept in the file's inode, and every sandbox and the
 * host have the same inode of a file of /usr and of /dev/null: there a lock holds up the host and
 * tells the neighbours. And no control group is charged for locks. So init takes them:
 *   - Only on the sandbox's own files: regular ones and directories on mounts that can be written
 *     to. Everything else nobody in here can write to, so a shared lock is granted without being
 *     taken, and an exclusive one is not to be had (ENOLCK).
 *   - flock's, and fcntl's of an open file (F_OFD_…), belong to the open file, which init has too
 *     while it sets them; they go with the file. There is one of the first kind for an open file,
 *     and OPEN_FILE_MAX of the second.
 *   - POSIX's belong to the process, and init cannot take a lock for another. It opens the file a
 *     second time for each process that locks it and sets locks of that open file: they conflict as
 *     the processes' own would. A POSIX lock ends when its process closes any descriptor of the
 *     file; init remembers through which it was taken, and looks whether they are still there,
 * every SWEEP_MS and before it decides about any lock. OWNERS_MAX × PROCESS_MAX of them.
 *   - Who has to wait is answered later: tried again after every other call and every WAIT_MS,
 *     oldest first.
 * What differs from the kernel's own: no EDEADLK, and closing a descriptor through which nothing
 * was locked does not end the locks that were taken through another. */

#include "init/locks.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SWEEP_MS      100
#define WAIT_MS       10
#define OPEN_FILE_MAX 4
#define PROCESS_MAX   64
#define PID_FS_MAGIC_ 0x50494446 /* Linux 6.9 */

/* ---- who has what ---- */

static bool same_file(struct lock_file a, struct lock_file b) {
    return a.dev == b.dev && a.ino == b.ino;
}

static long compare(pid_t thread, const struct lock_use *use) {
    return syscall(SYS_kcmp, getpid(), thread, KCMP_FILE, use->fd, use->number);
}

/* Of a process whose first thread has ended, only the others have descriptors. */
static bool another_has(pid_t process, const struct lock_use *use) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *dir = opendir(path);
    bool has = false;
    for (struct dirent *ent; dir && !has && (ent = readdir(dir));) {
        pid_t thread = (pid_t)strtol(ent->d_name, NULL, 10);
        has = thread > 0 && thread != process && compare(thread, use) == 0;
    }
    if (dir)
        closedir(dir);
    return has;
}

/* Whether the process still has the open file under that number. A kernel without kcmp is asked for
 * the file's name instead. */
static bool is_open(pid_t process, const struct lock_use *use) {
    long r = compare(process, use);
    if (r < 0 && errno == EBADF)
        return another_has(process, use);
    if (r >= 0 || errno != ENOSYS)
        return r == 0;
    char path[64];
    struct stat a, b;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)process, use->number);
    return stat(path, &a) == 0 && fstat(use->fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static void owner_done(struct lock_owner *o) {
    for (unsigned i = 0; i < o->nuses; i++)
        fd_close(&o->uses[i].fd);
    fd_close(&o->holder);
    *o = (struct lock_owner){.holder = -1};
}

static void sweep(struct locks *l) {
    for (unsigned i = 0; i < l->nowners; i++) {
        struct lock_owner *o = &l->owners[i];
        bool open = true;
        for (unsigned k = 0; o->process && k < o->nuses; k++)
            open = open && is_open(o->process, &o->uses[k]);
        if (!open)
            owner_done(o);
    }
    while (l->nowners && !l->owners[l->nowners - 1].process)
        l->nowners--;
}

static struct lock_owner *find_owner(struct locks *l, pid_t process, struct lock_file file) {
    for (unsigned i = 0; i < l->nowners; i++) {
        struct lock_owner *o = &l->owners[i];
        if (o->process == process && same_file(o->file, file))
            return o;
    }
    return NULL;
}

static struct lock_owner *free_owner(struct locks *l) {
    for (unsigned i = 0; i < l->nowners; i++) {
        if (!l->owners[i].process)
            return &l->owners[i];
    }
    return l->nowners < OWNERS_MAX ? &l->owners[l->nowners++] : NULL;
}

/* For reading too where the file cannot be written to, by its seals or because it runs. */
static int open_again(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return again >= 0 ? again : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static struct lock_owner *make_owner(struct locks *l, const struct lock_call *c) {
    struct lock_owner *o = free_owner(l);
    if (!o)
        return NULL;
    *o = (struct lock_owner){.process = c->from.process, .file = c->file};
    o->holder = open_again(c->fd);
    if (o->holder < 0)
        owner_done(o);
    return o->process ? o : NULL;
}

static bool remember_use(struct lock_owner *o, const struct lock_call *c) {
    const struct lock_use use = {.number = (int)c->from.args[0], .fd = c->fd};
    for (unsigned i = 0; i < o->nuses; i++) {
        if (o->uses[i].number == use.number) /* a sweep saw that it is the same */
            return true;
    }
    int fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 && o->nuses == 0) /* without a use to look at, no sweep would end the lock */
        owner_done(o);
    if (fd < 0)
        return false;
    if (o->nuses == USES_MAX) { /* of many, the oldest may be closed unnoticed */
        fd_close(&o->uses[0].fd);
        memmove(o->uses, o->uses + 1, --o->nuses * sizeof *o->uses);
    }
    o->uses[o->nuses++] = (struct lock_use){use.number, fd};
    return true;
}

/* ---- taking them ---- */

static bool is_all(const struct flock *f) {
    return f->l_start == 0 && f->l_len == 0;
}

/* Whether an open file of ours has no room for one more lock. */
static bool is_crowded(int fd, unsigned most) {
    char path[48], text[8192];
    struct err e;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    if (file_read_at(AT_FDCWD, path, text, sizeof text, &e) < 0)
        return true; /* too many to be read */
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "\nlock:")); at++)
        n++;
    return n >= most;
}

/* An unlocked piece in the middle makes two of one. */
static int set_lock(int fd, unsigned most, struct flock what) {
    bool frees = what.l_type == F_UNLCK && is_all(&what);
    if (!frees && is_crowded(fd, most))
        return ENOLCK;
    return fcntl(fd, F_OFD_SETLK, &what) < 0 ? errno : 0;
}

static int set_posix(struct locks *l, const struct lock_call *c) {
    struct lock_owner *o = find_owner(l, c->from.process, c->file);
    bool unlock = c->what.l_type == F_UNLCK;
    if (!o && unlock)
        return 0;
    if (!o)
        o = make_owner(l, c);
    if (!o || (!unlock && !remember_use(o, c)))
        return ENOLCK;
    int r = set_lock(o->holder, PROCESS_MAX, c->what);
    if (unlock && is_all(&c->what))
        owner_done(o);
    return r;
}

static bool is_posix(const struct lock_call *c) {
    uint32_t command = (uint32_t)c->from.args[1];
    return command == F_GETLK || command == F_SETLK || command == F_SETLKW;
}

static bool is_query(const struct lock_call *c) {
    uint32_t command = (uint32_t)c->from.args[1];
    return c->from.nr == SYS_fcntl && (command == F_GETLK || command == F_OFD_GETLK);
}

static int try_lock(struct locks *l, const struct lock_call *c) {
    if (c->from.nr == SYS_flock)
        return flock(c->fd, (int)c->from.args[1] | LOCK_NB) < 0 ? errno : 0;
    return is_posix(c) ? set_posix(l, c) : set_lock(c->fd, OPEN_FILE_MAX, c->what);
}

static bool may_wait(const struct lock_call *c) {
    uint32_t command = (uint32_t)c->from.args[1];
    if (c->from.nr == SYS_flock)
        return !(command & LOCK_NB);
    return command == F_SETLKW || command == F_OFD_SETLKW;
}

/* ---- the calls ---- */

/* Namespaces, pidfds and the like: an inode of the machine's, on a mount that is never read-only.
 */
static bool is_kernels(int fd) {
    struct statfs fs;
    return fstatfs(fd, &fs) < 0 || fs.f_type == NSFS_MAGIC || fs.f_type == PROC_SUPER_MAGIC ||
           fs.f_type == PID_FS_MAGIC_ || fs.f_type == ANON_INODE_FS_MAGIC;
}

static bool is_own(int fd, struct lock_file *ret) {
    struct stat st;
    struct statvfs fs;
    if (fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0)
        return false;
    *ret = (struct lock_file){st.st_dev, st.st_ino};
    return (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && !(fs.f_flag & ST_RDONLY) &&
           !is_kernels(fd);
}

/* Counts from the beginning of the file: the place in an open file of ours is another. 0 or an
 * errno. */
static int from_beginning(int fd, struct flock *f) {
    struct stat st;
    off_t base = f->l_whence == SEEK_CUR   ? lseek(fd, 0, SEEK_CUR)
                 : f->l_whence == SEEK_END ? (fstat(fd, &st) == 0 ? st.st_size : 0)
                                           : 0;
    if (f->l_whence != SEEK_SET && f->l_whence != SEEK_CUR && f->l_whence != SEEK_END)
        return EINVAL;
    if (f->l_type != F_RDLCK && f->l_type != F_WRLCK && f->l_type != F_UNLCK)
        return EINVAL;
    f->l_whence = SEEK_SET;
    return __builtin_add_overflow(base, f->l_start, &f->l_start) ? EOVERFLOW
           : f->l_start < 0                                      ? EINVAL
                                                                 : 0;
}

/* The kernel's rule: to lock for reading one must be able to read. */
static int check_mode(const struct lock_call *c) {
    int flags = fcntl(c->fd, F_GETFL), mode = flags & O_ACCMODE;
    if (flags < 0 || flags & O_PATH)
        return EBADF;
    if (is_query(c) || c->from.nr == SYS_flock)
        return 0;
    return (c->what.l_type == F_RDLCK && mode == O_WRONLY) ||
                   (c->what.l_type == F_WRLCK && mode == O_RDONLY)
               ? EBADF
               : 0;
}

static pid_t holder_of(const struct locks *l, const struct lock_call *c) {
    for (unsigned i = 0; i < l->nowners; i++) {
        const struct lock_owner *o = &l->owners[i];
        if (o->process && o->process != c->from.process && same_file(o->file, c->file))
            return o->process;
    }
    return -1;
}

static int tell_lock(struct locks *l, const struct lock_call *c, bool own) {
    const struct lock_owner *o = find_owner(l, c->from.process, c->file);
    struct flock answer = c->what;
    answer.l_pid = 0;
    if (!own)
        answer.l_type = F_UNLCK;
    else if (fcntl(is_posix(c) && o ? o->holder : c->fd, F_OFD_GETLK, &answer) < 0)
        return errno;
    if (is_posix(c) && answer.l_type != F_UNLCK)
        answer.l_pid = holder_of(l, c);
    if (answer.l_type == F_UNLCK) { /* all else stays as it was asked */
        short type = F_UNLCK;
        return caller_write(&c->from, c->from.args[2] + offsetof(struct flock, l_type), &type,
                            sizeof type)
                   ? 0
                   : EFAULT;
    }
    return caller_write(&c->from, c->from.args[2], &answer, sizeof answer) ? 0 : EFAULT;
}

/* A lock on what is not the sandbox's own. */
static int pretend(const struct lock_call *c) {
    if (c->from.nr == SYS_flock)
        return c->from.args[1] & (LOCK_SH | LOCK_UN) ? 0 : ENOLCK;
    return c->what.l_type == F_WRLCK ? ENOLCK : 0;
}

static int begin(struct locks *l, struct lock_call *c) {
    c->fd = caller_descriptor(&c->from);
    if (c->fd < 0)
        return errno;
    bool own = is_own(c->fd, &c->file);
    if (c->from.nr == SYS_fcntl) {
        if (!caller_read(&c->from, c->from.args[2], &c->what, sizeof c->what))
            return EFAULT;
        if (!is_posix(c) && c->what.l_pid != 0)
            return EINVAL;
        c->what.l_pid = 0;
        int r = from_beginning(c->fd, &c->what);
        if (r)
            return r;
    }
    int r = check_mode(c);
    if (r)
        return r;
    if (is_query(c))
        return tell_lock(l, c, own);
    return own ? try_lock(l, c) : pretend(c);
}

static bool is_taken(int errnum) {
    return errnum == EAGAIN || errnum == EACCES;
}

/* Those who cannot have it yet stay, in their order. */
static void try_again(struct locks *l) {
    unsigned kept = 0;
    for (unsigned i = 0; i < l->nwaits; i++) {
        struct lock_call *c = &l->waits[i];
        bool waits = caller_waits(&c->from);
        int r = waits ? try_lock(l, c) : 0;
        if (waits && is_taken(r) && caller_signalled(&c->from))
            r = EINTR;
        if (waits && is_taken(r)) {
            l->waits[kept++] = *c;
            continue;
        }
        if (waits)
            caller_answer(&c->from, r);
        fd_close(&c->fd);
    }
    l->nwaits = kept;
}

void locks_serve(struct locks *l, const struct caller *from) {
    struct lock_call c = {.from = *from, .fd = -1};
    locks_tick(l); /* what others have closed is free, and who waited comes first */
    int r = begin(l, &c);
    if (is_taken(r) && may_wait(&c) && l->nwaits < WAITS_MAX) {
        l->waits[l->nwaits++] = c;
        return;
    }
    caller_answer(from, is_taken(r) && may_wait(&c) ? ENOLCK : r);
    fd_close(&c.fd);
    if (l->nwaits)
        try_again(l);
}

int locks_patience(const struct locks *l) {
    return l->nwaits ? WAIT_MS : l->nowners ? SWEEP_MS : -1;
}

void locks_tick(struct locks *l) {
    sweep(l);
    try_again(l);
}
