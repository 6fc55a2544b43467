/* See rmtree.h. */

#include "base/rmtree.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

bool rmtree_some(int at, const char *name, unsigned *budget) {
    if (*budget == 0)
        return false;
    (*budget)--;
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return true;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(&fd);
        return true;
    }
    bool all = true;
    for (struct dirent *ent; all && (ent = readdir(d));) {
        if (strcmp(ent->d_name, ".") != 0 && strcmp(ent->d_name, "..") != 0)
            all = rmtree_some(fd, ent->d_name, budget);
    }
    closedir(d);
    if (all)
        unlinkat(at, name, AT_REMOVEDIR);
    return all;
}

void rmtree(int at, const char *name) {
    unsigned budget = UINT_MAX;
    rmtree_some(at, name, &budget);
}
