/* See remove.h. A tree may be deeper than any path is long and than descriptors could be open, so
 * nothing here descends: a directory that is not empty is first moved up into the top of the tree.
 * Each directory moves once at most. */

#include "init/remove.h"

#include "base/fd.h"
#include "init/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_STEPS 200000 /* several times what the tmpfs holds: somebody makes files faster */

struct remover {
    int top; /* borrowed */
    unsigned steps;
};

/* 0: gone. 1: a directory that is not empty. */
static int remove_one(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return errno == ENOTEMPTY || errno == EEXIST ? 1 : -1;
}

static int move_up(struct remover *r, int dir, const char *name) {
    char temp[32];
    beneath_name(temp);
    return renameat(dir, name, r->top, temp) < 0 && errno != ENOENT ? -1 : 0;
}

/* Each entry of `dir`, which is taken; -1 from fn ends it. */
static int each(struct remover *r, int dir,
                int (*fn)(struct remover *r, int dir, const char *name)) {
    DIR *d = fdopendir(dir);
    if (!d) {
        fd_close(&dir);
        return -1;
    }
    int result = 0;
    for (struct dirent *ent; result == 0 && (ent = readdir(d));) {
        if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
            continue;
        result = ++r->steps > MAX_STEPS ? (errno = EBUSY, -1) : fn(r, dirfd(d), ent->d_name);
    }
    int saved = errno;
    closedir(d);
    errno = saved;
    return result;
}

static int empty_sub(struct remover *r, int dir, const char *name) {
    int full = remove_one(dir, name);
    return full == 1 ? move_up(r, dir, name) : full;
}

static int empty_top(struct remover *r, int dir, const char *name) {
    int full = remove_one(dir, name);
    if (full != 1)
        return full;
    int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub < 0)
        return errno == ENOENT ? 0 : -1;
    if (each(r, sub, empty_sub) < 0)
        return -1;
    return remove_one(dir, name) < 0 ? -1 : 0;
}

int remove_tree(int dir, const char *name, bool recursive) {
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1; /* below, what is gone is as good as removed */
    int full = remove_one(dir, name);
    if (full == 1 && !recursive)
        return errno = ENOTEMPTY, -1;
    if (full != 1)
        return full;
    AUTO_FD top = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0)
        return -1;
    struct remover r = {.top = top};
    while (full == 1) {
        int again = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (again < 0 || each(&r, again, empty_top) < 0 || (full = remove_one(dir, name)) < 0)
            return -1;
        if (++r.steps > MAX_STEPS)
            return errno = EBUSY, -1;
    }
    return 0;
}
