/* See keys_file.h. */

#include "keys/keys_file.h"

#include "base/fd.h"
#include "base/service.h"
#include "keys/keys_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int keys_read(int dir_fd, const char *name, struct keys *ret, bool *ret_there, struct err *e) {
    /* Not blocking, for what turns out to be a pipe. */
    AUTO_FD fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        *ret = (struct keys){0};
        *ret_there = false;
        return 0;
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_user(e, "not_readable", "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_user(e, S_ISDIR(st.st_mode) ? "is_directory" : "not_readable",
                        "%s is no regular file", name);
    AUTO_FREE char *text = xmalloc(KEYS_FILE_MAX + 1);
    size_t len;
    if (fd_read_all(fd, text, KEYS_FILE_MAX + 1, &len, e) < 0)
        return err_user(e, e->code == EFBIG ? "bad_keys" : "not_readable", "%s: %s", name,
                        strerror(e->code));
    if (keys_parse(text, len, ret, e) < 0)
        return err_wrap(e, "%s", name);
    *ret_there = true;
    return 0;
}

/* A name beside the file's. */
static char *beside(const char *name, const char *ending) {
    struct buf b = BUF_INIT;
    buf_addf(&b, ".%s.%s", name, ending);
    return buf_take(&b);
}

static int cannot_write(const char *what, const char *name, struct err *e) {
    return err_user(e, "output_failed", "%s %s: %s", what, name, strerror(errno));
}

int keys_lock(int dir_fd, const char *name, int *ret_fd, struct err *e) {
    /* The lock file stays: whoever waits has it open, and must not wait for one that is gone. */
    AUTO_FREE char *lock = beside(name, "lock");
    AUTO_FD fd =
        openat(dir_fd, lock, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return cannot_write("lock", name, e);
    int rc;
    do
        rc = flock(fd, LOCK_EX);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return cannot_write("lock", name, e);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Whose the new file is to be: as the old one, or as fits a first one. */
static int choose_owner(int dir_fd, const char *name, struct stat *ret, struct err *e) {
    if (fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(ret->st_mode))
            return err_user(e, "output_failed", "%s is no regular file, so it is not replaced",
                            name);
        return 0;
    }
    if (errno != ENOENT)
        return cannot_write("look at", name, e);
    ret->st_uid = geteuid();
    ret->st_gid = service_find().gid;
    return 0;
}

static int fill_file(int fd, const char *name, const struct keys *k, const struct stat *owner,
                     struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return cannot_write("look at", name, e);
    /* Often there is nothing to do, and then nothing is asked that might be refused. */
    if ((st.st_uid != owner->st_uid || st.st_gid != owner->st_gid) &&
        fchown(fd, owner->st_uid, owner->st_gid) < 0)
        return cannot_write("keep the owner and group of", name, e);
    AUTO_BUF text = BUF_INIT;
    keys_encode(k, &text);
    if (fchmod(fd, 0640) < 0)
        return cannot_write("set the mode of", name, e);
    if (fd_write_all(fd, text.data, text.len, e) < 0) {
        errno = e->code;
        return cannot_write("write", name, e);
    }
    return fsync(fd) < 0 ? cannot_write("write", name, e) : 0;
}

int keys_write(int dir_fd, const char *name, const struct keys *k, struct err *e) {
    struct stat owner;
    if (choose_owner(dir_fd, name, &owner, e) < 0)
        return -1;
    AUTO_FREE char *fresh = beside(name, "new");
    /* Under the lock nobody else uses this name: what is there was left by one who was killed. */
    if (unlinkat(dir_fd, fresh, 0) < 0 && errno != ENOENT)
        return cannot_write("remove", fresh, e);
    AUTO_FD fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return cannot_write("write", name, e);
    if (fill_file(fd, name, k, &owner, e) < 0) {
        unlinkat(dir_fd, fresh, 0);
        return -1;
    }
    if (renameat(dir_fd, fresh, dir_fd, name) < 0) {
        cannot_write("replace", name, e);
        unlinkat(dir_fd, fresh, 0);
        return -1;
    }
    /* The name as well must survive a crash; a directory that we may not read is no reason to
     * fail now that the file is there. */
    AUTO_FD dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        (void)fsync(dir);
    return 0;
}
