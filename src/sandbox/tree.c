/* See tree.h. */

#include "sandbox/tree.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int tree_make_way(int root, const char *path, bool dir, struct err *e) {
    char part[256];
    for (const char *p = path; *p; p++) {
        bool last = p[1] == '\0';
        if (p[1] != '/' && !(last && dir))
            continue;
        snprintf(part, sizeof part, "%.*s", (int)(p + 1 - path), path);
        if (mkdirat(root, part, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "mkdir %s", part);
    }
    return 0;
}

int tree_put(int root, const char *path, const void *data, size_t len, struct err *e) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    AUTO_FD fd = openat(root, path, flags, 0644);
    if (fd < 0 && errno == ENOENT) {
        if (tree_make_way(root, path, false, e) < 0)
            return -1;
        fd = openat(root, path, flags, 0644);
    }
    if (fd < 0)
        return err_sys(e, "create %s", path);
    if (fchmod(fd, 0644) < 0)
        return err_sys(e, "chmod %s", path);
    return len ? fd_write_all(fd, data, len, e) : 0;
}

int tree_put_text(int root, const char *path, const char *text, struct err *e) {
    return tree_put(root, path, text, strlen(text), e);
}
