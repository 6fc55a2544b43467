/* See files.h. SECURITY: everything here works on a tree that hostile processes change at the same
 * time. Paths are resolved beneath the workspace (beneath.h), never by name twice; a fifo, device
 * or leased file cannot block, a last symlink is not followed, and only regular files are handed
 * out. What is made belongs to the sandbox. Between two steps a hostile process may swap one of its
 * own files for another of its own, and gains nothing by it. Not so in a directory of the host that
 * all sandboxes write to: there our rights reach what others of this nursery made, which the
 * operator is told (docs/sandboxes.md); what the host's own users have there, they do not reach. */

#include "init/files.h"

#include "base/fd.h"
#include "init/beneath.h"
#include "init/list.h"
#include "init/remove.h"
#include "wire/codec.h"
#include "wire/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODES      0777u
#define COPY_BYTES (1u << 20)

/* A request under way. */
struct ask {
    struct place place;
    struct wire_in *in;
    struct wire_out *o;
    int *ret_fd; /* what `o` names, closed after sending */
};

void files_error(struct wire_out *o, int errnum, const char *what) {
    char text[200];
    snprintf(text, sizeof text, "%.120s%s: %s", what, strlen(what) > 120 ? "..." : "",
             strerror(errnum));
    i_error_put(o, &(struct i_error){.errnum = (uint32_t)errnum, .why = text});
}

/* The end of a request that answers nothing but "done". */
static void done(struct ask *a, int r, const char *what) {
    if (r < 0)
        files_error(a->o, errno, what);
    else
        wire_begin(a->o, WIRE_I_REPLY);
}

static void give_fd(struct ask *a, int *fd) {
    i_reply_fd_put(a->o, &(struct i_reply_fd){.fd = *fd});
    *a->ret_fd = fd_take(fd);
}

/* ---- reading ---- */

/* Why a descriptor may not leave the sandbox; 0 if it may. */
static int unfit(int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
}

static void do_open(struct ask *a) {
    struct i_open m;
    struct err e;
    const char *name;
    if (i_open_get(a->in, &m, &e) < 0 ||
        (m.flags & ~(uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC | O_EXCL))) {
        files_error(a->o, EINVAL, "open");
        return;
    }
    bool create = m.flags & O_CREAT;
    AUTO_FD above = create ? beneath_parent(&a->place, m.path, true, &name) : -1;
    AUTO_FD fd = create && above < 0
                     ? -1
                     : beneath_open(&a->place, m.path, m.flags, (mode_t)(m.mode & MODES));
    int bad = fd < 0 ? errno : unfit(fd);
    if (!bad && create && fchown(fd, a->place.uid, a->place.uid) < 0)
        bad = errno;
    if (bad)
        files_error(a->o, bad, m.path);
    else
        give_fd(a, &fd);
}

static void do_stat(struct ask *a) {
    struct i_stat m;
    struct err e;
    char target[ENTRY_PATH_MAX + 1] = "";
    struct stat st;
    if (i_stat_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "stat");
        return;
    }
    AUTO_FD fd = beneath_open(&a->place, m.path, O_PATH, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        files_error(a->o, errno, m.path);
        return;
    }
    if (S_ISLNK(st.st_mode))
        list_target(fd, "", target);
    AUTO_BUF record = BUF_INIT;
    struct entry f = list_entry(&st, m.path, target);
    entry_put(&record, &f);
    i_reply_entry_put(a->o, &(struct i_reply_entry){{record.data, record.len}});
}

static void give_list(struct ask *a, uint32_t count, bool cut) {
    i_reply_list_put(a->o,
                     &(struct i_reply_list){.count = count, .cut = cut, .records = *a->ret_fd});
}

static void do_list(struct ask *a) {
    struct i_list m;
    struct err e;
    if (i_list_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "list");
        return;
    }
    struct listing l = {.out = BUF_INIT, .recursive = m.recursive, .most = m.most};
    int dir = beneath_open(&a->place, m.path, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0) {
        files_error(a->o, errno, m.path);
        return;
    }
    int r = list_page(&l, dir, m.path, m.after);
    if (r == 0 && memfd_of("list", l.out.data, l.out.len, a->ret_fd, &e) < 0)
        r = -1, errno = e.code;
    buf_done(&l.out);
    if (r < 0)
        files_error(a->o, errno, m.path);
    else
        give_list(a, l.count, l.cut);
}

static void do_changes(struct ask *a) {
    struct i_changes m;
    struct err e;
    if (i_changes_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "list the workspace");
        return;
    }
    struct changed w = {.out = BUF_INIT, .most = m.most, .depth = m.depth, .since_ns = m.since_ns};
    int top = openat(a->place.workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = top < 0 ? err_sys(&e, "open") : 0;
    if (r == 0) {
        list_changes(&w, top);
        r = memfd_of("changes", w.out.data, w.out.len, a->ret_fd, &e);
    }
    buf_done(&w.out);
    if (r < 0)
        files_error(a->o, e.code, "list the workspace");
    else
        give_list(a, w.count, w.cut);
}

/* ---- changing ---- */

static void do_mkdir(struct ask *a) {
    struct i_mkdir m;
    struct err e;
    const char *name = "";
    if (i_mkdir_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "mkdir");
        return;
    }
    AUTO_FD dir = beneath_parent(&a->place, m.path, m.parents, &name);
    int r = dir < 0 ? -1 : mkdirat(dir, name, (mode_t)(m.mode & MODES));
    if (r == 0)
        r = fchownat(dir, name, a->place.uid, a->place.uid, AT_SYMLINK_NOFOLLOW);
    done(a, r, m.path);
}

static void do_move(struct ask *a) {
    struct i_move m;
    struct err e;
    const char *old = "", *new = "";
    if (i_move_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "move");
        return;
    }
    AUTO_FD there = beneath_parent(&a->place, m.from, false, &old);
    struct stat st;
    if (there < 0 || fstatat(there, old, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        files_error(a->o, errno, m.from);
        return;
    }
    AUTO_FD dir = beneath_parent(&a->place, m.to, true, &new);
    done(a, dir < 0 ? -1 : renameat2(there, old, dir, new, RENAME_NOREPLACE), m.to);
}

/* Through /proc/self/fd: a path could be swapped for a symlink, and fchmod takes no O_PATH
 * descriptor. */
static int change_mode(int fd, mode_t mode) {
    char name[32];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return errno = S_ISLNK(st.st_mode) ? ELOOP : ENXIO, -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return chmod(name, mode);
}

static void do_chmod(struct ask *a) {
    struct i_chmod m;
    struct err e;
    if (i_chmod_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "chmod");
        return;
    }
    AUTO_FD fd = beneath_open(&a->place, m.path, O_PATH, 0);
    done(a, fd < 0 ? -1 : change_mode(fd, (mode_t)(m.mode & MODES)), m.path);
}

static void do_remove(struct ask *a) {
    struct i_remove m;
    struct err e;
    const char *name = "";
    if (i_remove_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "remove");
        return;
    }
    AUTO_FD dir = beneath_parent(&a->place, m.path, false, &name);
    done(a, dir < 0 ? -1 : remove_tree(dir, name, m.recursive), m.path);
}

/* ---- writing: a file without a name, which gets one when it is whole ---- */

static void do_temp(struct ask *a) {
    struct err e;
    AUTO_FD fd = wire_get_nothing(a->in, &e) == 0
                     ? openat(a->place.workspace, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                     : (errno = EINVAL, -1);
    if (fd < 0 || fchown(fd, a->place.uid, a->place.uid) < 0)
        files_error(a->o, errno, "make a file");
    else
        give_fd(a, &fd);
}

/* SECURITY: for the server alone. What is written at this end is worked on by threads of the kernel
 * that no group is charged for: tabs and echoes make a thousand times what writing them costs. */
static void do_terminal(struct ask *a) {
    const int unlock = 0;
    struct err e;
    AUTO_FD fd = wire_get_nothing(a->in, &e) == 0
                     ? open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
                     : (errno = EINVAL, -1);
    if (fd < 0 || ioctl(fd, TIOCSPTLCK, &unlock) < 0)
        files_error(a->o, errno, "open a terminal");
    else
        give_fd(a, &fd);
}

/* SECURITY: nothing but a file of I_TEMP gets a name here. */
static int check_temp(const struct ask *a, int fd) {
    struct stat st, own;
    if (fstat(fd, &st) < 0 || fstat(a->place.workspace, &own) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) || st.st_dev != own.st_dev || st.st_nlink != 0)
        return errno = EINVAL, -1;
    return 0;
}

/* What may be replaced: 1 if there is something, 0 if not. */
static int look_at(int dir, const char *name) {
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(st.st_mode))
        return errno = EISDIR, -1;
    return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 1 : (errno = EEXIST, -1);
}

/* From a name that nobody knows to the one that is wanted, in one step for whoever looks. */
static int rename_over(int dir, const char *temp, const char *name) {
    if (renameat(dir, temp, dir, name) == 0)
        return 0;
    int saved = errno;
    unlinkat(dir, temp, 0);
    return errno = saved, -1;
}

static int dress(int fd, mode_t mode, uint64_t mtime_ns) {
    const struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)(mtime_ns / 1000000000u), .tv_nsec = (long)(mtime_ns % 1000000000u)}};
    return fchmod(fd, mode) < 0 || (mtime_ns && futimens(fd, times) < 0) ? -1 : 0;
}

/* A directory of the host: its files are on another file system, so the content is copied. */
static int copy_to(const struct ask *a, int dir, const char *temp, int from) {
    struct stat st;
    AUTO_FD to = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0 || fstat(from, &st) < 0)
        return -1;
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = sendfile(to, from, &at, COPY_BYTES);
        if (n == 0)
            return errno = EIO, -1;
        if (n < 0 && errno != EINTR)
            return -1;
    }
    return fchown(to, a->place.uid, a->place.uid) < 0 || fchmod(to, st.st_mode & MODES) < 0
               ? -1
               : futimens(to, times);
}

static int place(const struct ask *a, int dir, const char *name, int fd) {
    char self[32], temp[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    beneath_name(temp);
    int r = linkat(AT_FDCWD, self, dir, temp, AT_SYMLINK_FOLLOW);
    if (r < 0 && errno != EXDEV)
        return -1;
    if (r < 0 && copy_to(a, dir, temp, fd) < 0) {
        int saved = errno;
        unlinkat(dir, temp, 0);
        return errno = saved, -1;
    }
    return rename_over(dir, temp, name);
}

static void do_place(struct ask *a) {
    struct i_place m;
    struct err e;
    const char *name = "";
    if (i_place_get(a->in, &m, &e) < 0 || check_temp(a, m.file) < 0) {
        files_error(a->o, EINVAL, "place");
        return;
    }
    AUTO_FD dir = beneath_parent(&a->place, m.path, true, &name);
    int replaced = dir < 0 ? -1 : look_at(dir, name);
    if (replaced < 0 || dress(m.file, (mode_t)(m.mode & MODES), m.mtime_ns) < 0 ||
        place(a, dir, name, m.file) < 0) {
        files_error(a->o, errno, m.path);
        return;
    }
    i_reply_place_put(a->o, &(struct i_reply_place){.replaced = (uint32_t)replaced});
}

static void do_link(struct ask *a) {
    struct i_link m;
    struct err e;
    const char *name = "";
    char temp[32];
    if (i_link_get(a->in, &m, &e) < 0) {
        files_error(a->o, EINVAL, "link");
        return;
    }
    beneath_name(temp);
    AUTO_FD dir = beneath_parent(&a->place, m.path, true, &name);
    int r = dir < 0 || look_at(dir, name) < 0 ? -1 : symlinkat(m.target, dir, temp);
    if (r == 0)
        r = fchownat(dir, temp, a->place.uid, a->place.uid, AT_SYMLINK_NOFOLLOW);
    done(a, r < 0 ? -1 : rename_over(dir, temp, name), m.path);
}

/* ---- which ---- */

static const struct {
    enum wire_type type;
    void (*fn)(struct ask *a);
} requests[] = {
    {WIRE_I_OPEN, do_open},   {WIRE_I_CHANGES, do_changes}, {WIRE_I_STAT, do_stat},
    {WIRE_I_LIST, do_list},   {WIRE_I_MKDIR, do_mkdir},     {WIRE_I_MOVE, do_move},
    {WIRE_I_CHMOD, do_chmod}, {WIRE_I_REMOVE, do_remove},   {WIRE_I_TEMP, do_temp},
    {WIRE_I_PLACE, do_place}, {WIRE_I_LINK, do_link},       {WIRE_I_TTY, do_terminal},
};

bool files_serve(struct wire_in *in, int workspace, uint32_t uid, struct wire_out *o, int *ret_fd) {
    *ret_fd = -1;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].type != in->type)
            continue;
        requests[i].fn(&(struct ask){{workspace, uid}, in, o, ret_fd});
        wire_in_done(in); /* before the answer: what somebody has open to write to cannot be run */
        return true;
    }
    return false;
}
