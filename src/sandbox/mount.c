/* See mount.h. glibc 2.36 has wrappers for these calls; all are usable after fork. */

#include "sandbox/mount.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t attributes(unsigned flags) {
    return MOUNT_ATTR_NOSUID | (flags & MOUNT_RO ? MOUNT_ATTR_RDONLY : 0u) |
           (flags & MOUNT_NODEV ? MOUNT_ATTR_NODEV : 0u) |
           (flags & MOUNT_NOEXEC ? MOUNT_ATTR_NOEXEC : 0u);
}

/* An empty path is the directory itself. */
static int clone_at(int dir, const char *path, unsigned flags, int *ret_fd, struct err *e) {
    AUTO_FD fd =
        open_tree(dir, path,
                  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | (*path ? 0 : AT_EMPTY_PATH));
    if (fd < 0)
        return err_sys(e, "open_tree %s", path);
    struct mount_attr attr = {.attr_set = attributes(flags), .propagation = MS_PRIVATE};
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
        return err_sys(e, "mount_setattr %s", path);
    *ret_fd = fd_take(&fd);
    return 0;
}

int mount_clone(const char *path, unsigned flags, int *ret_fd, struct err *e) {
    return clone_at(AT_FDCWD, path, flags, ret_fd, e);
}

int mount_clone_fd(int dir, unsigned flags, int *ret_fd, struct err *e) {
    return clone_at(dir, "", flags, ret_fd, e);
}

int mount_attach(int mount_fd, int dirfd, const char *path, struct err *e) {
    if (move_mount(mount_fd, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "move_mount to %s", path);
    return 0;
}

int mount_attach_fd(int mount_fd, int dir, struct err *e) {
    if (move_mount(mount_fd, "", dir, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return err_sys(e, "move_mount");
    return 0;
}

int mount_fs(const char *type, const char *path, unsigned flags, const char *data, struct err *e) {
    unsigned long f = MS_NOSUID | (flags & MOUNT_RO ? MS_RDONLY : 0u) |
                      (flags & MOUNT_NODEV ? MS_NODEV : 0u) |
                      (flags & MOUNT_NOEXEC ? MS_NOEXEC : 0u);
    if (mount(type, path, type, f, data) < 0)
        return err_sys(e, "mount %s at %s", type, path);
    return 0;
}

int mount_set(const char *path, unsigned flags, bool recursive, struct err *e) {
    struct mount_attr attr = {.attr_set = attributes(flags)};
    if (mount_setattr(AT_FDCWD, path, recursive ? AT_RECURSIVE : 0, &attr, sizeof attr) < 0)
        return err_sys(e, "mount_setattr %s", path);
    return 0;
}
