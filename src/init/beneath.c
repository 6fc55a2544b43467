/* See beneath.h. SECURITY: a fifo, device or leased file cannot block (O_NONBLOCK), and magic links
 * lead nowhere. */

#include "init/beneath.h"

#include "base/fd.h"
#include "wire/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_ROOM 4096

static int resolve(int dir, const char *path, uint64_t flags, mode_t mode) {
    struct open_how how = {
        .flags = flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof how);
}

int beneath_open(const struct place *p, const char *path, uint64_t flags, mode_t mode) {
    return resolve(p->workspace, path, flags | O_NOFOLLOW, mode);
}

static int open_above(const struct place *p, const char *path, const char *name) {
    char above[PATH_ROOM];
    size_t n = name > path ? (size_t)(name - path) - 1 : 0;
    if (n >= sizeof above)
        return errno = ENAMETOOLONG, -1;
    memcpy(above, path, n);
    above[n] = '\0';
    return resolve(p->workspace, above, O_PATH | O_DIRECTORY, 0);
}

/* One directory, in one that is there. */
static int make_one(const struct place *p, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_FD dir = open_above(p, path, name);
    if (dir < 0)
        return -1;
    if (mkdirat(dir, name, 0755) < 0)
        return errno == EEXIST ? 0 : -1;
    return fchownat(dir, name, p->uid, p->uid, AT_SYMLINK_NOFOLLOW);
}

static int make_above(const struct place *p, const char *path) {
    char part[PATH_ROOM];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - path);
        if (n == 0 || n >= sizeof part)
            return errno = EINVAL, -1;
        memcpy(part, path, n);
        part[n] = '\0';
        AUTO_FD there = resolve(p->workspace, part, O_PATH | O_DIRECTORY, 0);
        if (there < 0 && (errno != ENOENT || make_one(p, part) < 0))
            return -1;
    }
    return 0;
}

int beneath_parent(const struct place *p, const char *path, bool make, const char **ret_name) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return errno = EINVAL, -1;
    *ret_name = name;
    if (make && entry_depth(path) > ENTRY_DEPTH_MAX)
        return errno = ENAMETOOLONG, -1;
    int dir = open_above(p, path, name);
    if (dir >= 0 || errno != ENOENT || !make)
        return dir;
    return make_above(p, path) < 0 ? -1 : open_above(p, path, name);
}

void beneath_name(char ret[32]) {
    uint64_t r = 0;
    (void)!getrandom(&r, sizeof r, GRND_NONBLOCK); /* a name that is taken is an error, no more */
    snprintf(ret, 32, ".cloche-%016llx", (unsigned long long)r);
}
