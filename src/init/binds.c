/* See binds.h. Theory of operation: the allowed directories are mounted aside in the nursery's root
 * and locked there. A sandbox covers that place, so that nothing in it can be reached by any path;
 * init alone has opened them before, and clones what is asked for into the workspace.
 *
 * SECURITY: user code has no way to a directory that was not asked for: init's descriptors are not
 * its own, and it can neither trace init nor mount. The way from the allowed directory down is
 * resolved without any link and cannot leave it, whoever changes the tree meanwhile: what lies
 * there may have been written by an earlier sandbox. The place in the workspace is new. Both ends
 * are descriptors, so nothing is looked up twice. What was allowed read-only is mounted so, locked,
 * and no clone of it can be written to. */

#include "init/binds.h"

#include "base/fd.h"
#include "init/init.h"
#include "sandbox/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int binds_open(struct binds *b, const struct init_plan *plan, struct err *e) {
    b->allowed = plan->allowed;
    b->trees = -1;
    for (b->n = 0; b->n < plan->nallowed && b->n < MOUNTS_MAX; b->n++) {
        if (root_allowed(b->n, &b->dirs[b->n], e) < 0)
            return -1;
    }
    return plan->has_trees ? root_trees(&b->trees, e) : 0;
}

void binds_keep(struct binds *b, int first) {
    for (unsigned i = 0; i < b->n; i++)
        b->dirs[i] = fcntl(b->dirs[i], F_DUPFD_CLOEXEC, first);
    if (b->trees >= 0)
        b->trees = fcntl(b->trees, F_DUPFD_CLOEXEC, first);
}

static const struct root_mount *find(const struct binds *b, const char *host, int *ret_dir) {
    for (unsigned i = 0; i < b->n; i++) {
        *ret_dir = b->dirs[i];
        if (strcmp(b->allowed[i].host, host) == 0)
            return &b->allowed[i];
    }
    return NULL;
}

static int open_below(int dir, const char *path, struct err *e) {
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof how);
    if (fd < 0)
        err_sys(e, "open %s", path);
    return fd;
}

/* A new directory, which will be covered. */
static int make_place(const struct place *at, const char *path, struct err *e) {
    const char *name;
    AUTO_FD above = beneath_parent(at, path, true, &name);
    int fd = -1;
    if (above >= 0 && mkdirat(above, name, 0755) == 0)
        fd = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        err_sys(e, "make %s", path);
    return fd;
}

int binds_mount(const struct binds *b, const struct i_bind *m, const struct place *at,
                struct err *e) {
    int top;
    const struct root_mount *allowed = find(b, m->allowed, &top);
    if (!allowed || (m->writable && !allowed->writable))
        return err_set(e, EACCES, "%s is not allowed", m->allowed);
    AUTO_FD from = open_below(top, m->below, e);
    AUTO_FD to = from < 0 ? -1 : make_place(at, m->path, e);
    AUTO_FD tree = -1;
    if (to < 0 || mount_clone_fd(from, MOUNT_NODEV | (m->writable ? 0 : MOUNT_RO), &tree, e) < 0)
        return -1;
    return mount_attach_fd(tree, to, e);
}

/* SECURITY: its id is the server's word, and the way to it has no link; in the tree are files that
 * a stranger chose, which nobody runs but who is in this sandbox already. */
int binds_mount_tree(const struct binds *b, const char *id, struct err *e) {
    char path[WIRE_PATH];
    int n = snprintf(path, sizeof path, "%s/" TREE_FILES, id);
    if (b->trees < 0 || strchr(id, '/') || n < 0 || (size_t)n >= sizeof path)
        return err_set(e, EACCES, "there is no profile %.60s", id);
    AUTO_FD from = open_below(b->trees, path, e);
    AUTO_FD to = from < 0 ? -1 : open(ROOT_TREE, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD tree = -1;
    if (from < 0)
        return -1;
    if (to < 0)
        return err_sys(e, "open " ROOT_TREE);
    if (mount_clone_fd(from, MOUNT_NODEV | MOUNT_RO, &tree, e) < 0)
        return -1;
    return mount_attach_fd(tree, to, e);
}
