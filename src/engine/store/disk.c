/* See disk.h. */

#include "engine/store/disk.h"

#include "base/fd.h"
#include "base/id.h"
#include "loop/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *before, *after;
} affixes[DISK_PARTS_] = {
    [DISK_DATA] = {"", ""},
    [DISK_META] = {"", ".meta.json"},
    [DISK_NEW_DATA] = {".", ".part"},
    [DISK_NEW_META] = {".", ".meta.part"},
};

struct path {
    char text[64];
};

static struct path path_of(const char *id, enum disk_part part) {
    struct path p;
    snprintf(p.text, sizeof p.text, "%s%.36s%s", affixes[part].before, id, affixes[part].after);
    return p;
}

static bool is_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_uuid(const char *text, size_t len) {
    if (len != STORE_ID_LEN)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_digit(text[i]))
            return false;
    }
    return true;
}

bool disk_is_id(const char *text) {
    return is_uuid(text, strnlen(text, STORE_ID_LEN + 1));
}

void disk_make_id(char out[STORE_ID_LEN + 1]) {
    char digits[ID_DIGITS + 1];
    id_make("", digits, sizeof digits);
    digits[12] = '4'; /* version: random */
    digits[16] = "89ab"[(digits[16] <= '9' ? digits[16] : digits[16] - 'a' + 10) & 3]; /* variant */
    snprintf(out, STORE_ID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
             digits + 16, digits + 20);
}

bool disk_parse_name(const char *name, char ret_id[STORE_ID_LEN + 1], enum disk_part *ret_part) {
    for (enum disk_part p = DISK_DATA; p < DISK_PARTS_; p++) {
        size_t before = strlen(affixes[p].before), after = strlen(affixes[p].after);
        size_t len = strlen(name);
        if (len != before + STORE_ID_LEN + after || memcmp(name, affixes[p].before, before) != 0 ||
            strcmp(name + len - after, affixes[p].after) != 0 ||
            !is_uuid(name + before, STORE_ID_LEN))
            continue;
        memcpy(ret_id, name + before, STORE_ID_LEN);
        ret_id[STORE_ID_LEN] = '\0';
        *ret_part = p;
        return true;
    }
    return false;
}

int disk_open(const struct disk *d, const char *id, enum disk_part part, struct stat *ret_stat,
              int *ret_fd, struct err *e) {
    struct path path = path_of(id, part);
    /* O_NONBLOCK: should something have put a FIFO there, we do not wait for its writer */
    AUTO_FD fd = openat(d->dir, path.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret_stat) < 0)
        return err_sys(e, "open %s", path.text);
    if (!S_ISREG(ret_stat->st_mode))
        return err_set(e, EINVAL, "open %s: not a regular file", path.text);
    *ret_fd = fd_take(&fd);
    return 0;
}

int disk_unlink(const struct disk *d, const char *id, enum disk_part part, struct err *e) {
    struct path path = path_of(id, part);
    bool large = d->crew && (part == DISK_DATA || part == DISK_NEW_DATA);
    AUTO_FD held = large ? openat(d->dir, path.text, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (unlinkat(d->dir, path.text, 0) < 0 && errno != ENOENT)
        return err_sys(e, "remove %s", path.text);
    if (held >= 0)
        crew_close(d->crew, &held);
    return 0;
}

int disk_error(struct err *e) {
    int code = e->code;
    char text[sizeof e->text];
    memcpy(text, e->text, sizeof text);
    if (code == ENOSPC || code == EDQUOT)
        err_user(e, "disk_full", "%s", text);
    else if (code == EFBIG)
        err_user(e, "file_too_large", "%s", text);
    e->code = code;
    return -1;
}

int disk_create(const struct disk *d, const char *id, enum disk_part part, int *ret_fd,
                struct err *e) {
    struct path path = path_of(id, part);
    int fd = openat(d->dir, path.text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_sys(e, "create %s", path.text);
        return disk_error(e);
    }
    *ret_fd = fd;
    return 0;
}

/* Where the file system knows no files without names, it has one for a moment: that of an upload,
 * which the next start removes. */
int disk_create_nameless(const struct disk *d, int *ret_fd, struct err *e) {
    char id[STORE_ID_LEN + 1];
    int fd = openat(d->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        disk_make_id(id);
        struct path path = path_of(id, DISK_NEW_DATA);
        fd = openat(d->dir, path.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0)
            unlinkat(d->dir, path.text, 0);
    }
    if (fd < 0) {
        err_sys(e, "create a file");
        return disk_error(e);
    }
    *ret_fd = fd;
    return 0;
}

int disk_rename(const struct disk *d, const char *id, enum disk_part from, enum disk_part to,
                struct err *e) {
    struct path a = path_of(id, from), b = path_of(id, to);
    if (renameat(d->dir, a.text, d->dir, b.text) == 0)
        return 0;
    err_sys(e, "rename %s", a.text);
    return disk_error(e);
}

bool disk_size(const struct disk *d, const char *id, enum disk_part part, uint64_t *ret) {
    struct stat st;
    if (fstatat(d->dir, path_of(id, part).text, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode))
        return false;
    *ret = (uint64_t)st.st_size;
    return true;
}
