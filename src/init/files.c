/* See files.h. SECURITY: everything here works on a tree that hostile processes change at the same
 * time. Paths are resolved by openat2 beneath the workspace, never by name twice; a fifo, device or
 * leased file cannot block (O_NONBLOCK), a last symlink is not followed, and only regular files are
 * handed out. Counts, depth and bytes are bounded by the request and by MAX_BYTES. */

#include "init/files.h"

#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_BYTES (4u << 20)

void files_error(struct wire_out *o, int errnum, const char *what) {
    char text[200];
    snprintf(text, sizeof text, "%s: %s", what, strerror(errnum));
    wire_begin(o, WIRE_I_ERROR);
    wire_put_u32(o, (uint32_t)errnum);
    wire_put_str(o, text);
}

static int open_beneath(int dir, const char *path, uint64_t flags, mode_t mode) {
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* Makes every directory above the last part of path; they belong to the sandbox. */
static int make_parents(int workspace, const char *path, uint32_t uid) {
    char part[4096];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - path);
        if (n == 0 || n >= sizeof part)
            return errno = EINVAL, -1;
        memcpy(part, path, n);
        part[n] = '\0';
        AUTO_FD there = open_beneath(workspace, part, O_PATH | O_DIRECTORY, 0);
        if (there >= 0)
            continue;
        const char *base = strrchr(part, '/');
        char above[4096];
        snprintf(above, sizeof above, "%.*s", base ? (int)(base - part) : 1, base ? part : ".");
        AUTO_FD dir = open_beneath(workspace, above, O_RDONLY | O_DIRECTORY, 0);
        const char *name = base ? base + 1 : part;
        if (dir < 0 || (mkdirat(dir, name, 0755) < 0 && errno != EEXIST))
            return -1;
        if (fchownat(dir, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
    }
    return 0;
}

/* Why a descriptor may not leave the sandbox; 0 if it may. */
static int unfit(int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return errno;
    return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
}

void files_open(struct wire_in *in, int workspace, uint32_t uid, struct wire_out *o, int *ret_fd) {
    *ret_fd = -1;
    uint32_t flags = wire_get_u32(in), mode = wire_get_u32(in);
    const char *path = wire_get_str(in, 4095);
    struct err e;
    if (wire_end(in, &e) < 0 || (flags & ~(uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC | O_EXCL))) {
        files_error(o, EINVAL, "open");
        return;
    }
    bool create = flags & O_CREAT;
    if (create && make_parents(workspace, path, uid) < 0) {
        files_error(o, errno, path);
        return;
    }
    AUTO_FD fd = open_beneath(workspace, path, flags, mode & 0777);
    int bad = fd < 0 ? errno : unfit(fd);
    if (!bad && create && fchown(fd, uid, uid) < 0)
        bad = errno;
    if (bad) {
        files_error(o, bad, path);
        return;
    }
    wire_begin(o, WIRE_I_REPLY);
    wire_put_fd(o, fd);
    *ret_fd = fd_take(&fd);
}

struct walk {
    struct buf out; /* records: u64 size, u32 length of the path, the path */
    char path[4096];
    uint32_t most, count, depth;
    uint64_t since_ns; /* by their change time, which nobody can set */
    bool cut;          /* not all is in the list */
    bool full; /* and no more goes in; a tree that is too deep does not hide its neighbours */
};

static void walk_file(struct walk *w, const struct stat *st, size_t len) {
    if ((uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec < w->since_ns)
        return;
    if (w->count == w->most || w->out.len > MAX_BYTES) {
        w->cut = w->full = true;
        return;
    }
    uint64_t size = (uint64_t)st->st_size;
    uint32_t n = (uint32_t)len;
    buf_add(&w->out, &size, sizeof size);
    buf_add(&w->out, &n, sizeof n);
    buf_add(&w->out, w->path, len);
    w->count++;
}

/* `len` is the length of w->path, which names `dir`. Takes dir. */
static void walk_dir(struct walk *w, int dir, size_t len, uint32_t depth) {
    DIR *d = fdopendir(dir);
    if (!d) {
        fd_close(&dir);
        return;
    }
    for (struct dirent *ent; !w->full && (ent = readdir(d));) {
        size_t n = strlen(ent->d_name), sep = len ? 1 : 0;
        if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
            continue;
        struct stat st;
        if (len + sep + n >= sizeof w->path ||
            fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (sep)
            w->path[len] = '/';
        memcpy(w->path + len + sep, ent->d_name, n);
        if (S_ISREG(st.st_mode)) {
            walk_file(w, &st, len + sep + n);
        } else if (S_ISDIR(st.st_mode) && depth < w->depth) {
            int sub =
                openat(dirfd(d), ent->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (sub >= 0)
                walk_dir(w, sub, len + sep + n, depth + 1);
        } else if (S_ISDIR(st.st_mode)) {
            w->cut = true;
        }
    }
    closedir(d);
}

void files_changes(struct wire_in *in, int workspace, struct wire_out *o, int *ret_fd) {
    *ret_fd = -1;
    struct walk w = {.out = BUF_INIT, .most = wire_get_u32(in), .depth = wire_get_u32(in)};
    w.since_ns = wire_get_u64(in);
    struct err e;
    int top = wire_end(in, &e) < 0 || w.depth > 64
                  ? -1
                  : openat(workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) {
        files_error(o, errno ? errno : EINVAL, "list the workspace");
        return;
    }
    walk_dir(&w, top, 0, 0);
    int r = memfd_of("changes", w.out.data, w.out.len, ret_fd, &e);
    buf_done(&w.out);
    if (r < 0) {
        files_error(o, e.code, "list the workspace");
        return;
    }
    wire_begin(o, WIRE_I_REPLY);
    wire_put_u32(o, w.count);
    wire_put_u32(o, w.cut);
    wire_put_fd(o, *ret_fd);
}
