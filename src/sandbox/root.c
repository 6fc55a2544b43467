/* See root.h. Theory of operation: every host path that is to be seen is first cloned as a detached
 * mount (so that covering a directory of the host does not matter), then a tmpfs is mounted, filled
 * with directories, links, a few made files of /etc and the detached mounts, and pivoted to. The
 * children of this mount namespace (the sandboxes') get it locked, since they live in a user
 * namespace below: not even root in there can unmount or remount a part of it.
 *
 * No host path but those of the plan, /usr and a few of /etc is in it. Our own files are copied,
 * not bound, so that mountinfo inside does not tell where cloche is installed. */

#include "sandbox/root.h"

#include "base/fd.h"
#include "sandbox/mount.h"
#include "sandbox/proc.h"
#include "sandbox/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ASIDE     ROOT_PYLIB "/mounts" /* covered in a sandbox */
#define ALLOWED   ASIDE "/allowed-%u"
#define TREES     ASIDE "/trees"
#define OTHER     "/app" /* what ipybox's users call the workspace */
#define WORKSPACE "/workspace"
#define STAGE     "/usr" /* exists everywhere; covered by the new root until it is pivoted to */
#define MAX_IN    96
/* At most 64 terminals each: the machine has a few thousand for all. */
#define COMMAND_TERMINALS 40         /* the server's: more than there are commands */
#define SMALL             (1u << 20) /* a file up to this size is copied */

struct bind {
    char path[256];
    int fd;
    bool dir;
};

struct builder {
    struct bind binds[MAX_IN];
    unsigned nbinds;
};

static void builder_done(struct builder *b) {
    for (unsigned i = 0; i < b->nbinds; i++)
        fd_close(&b->binds[i].fd);
}

static int want_at(struct builder *b, const char *host, const char *path, unsigned flags,
                   struct err *e) {
    if (b->nbinds == MAX_IN)
        return err_set(e, E2BIG, "more than %d paths in a profile", MAX_IN);
    struct stat st;
    struct bind *in = &b->binds[b->nbinds];
    if (strlen(path) >= sizeof in->path)
        return err_set(e, ENAMETOOLONG, "%.60s…: longer than %zu bytes", path, sizeof in->path - 1);
    if (stat(host, &st) < 0)
        return err_sys(e, "%s", host);
    if (mount_clone(host, flags, &in->fd, e) < 0)
        return -1;
    snprintf(in->path, sizeof in->path, "%s", path);
    in->dir = S_ISDIR(st.st_mode);
    b->nbinds++;
    return 0;
}

static int want(struct builder *b, const char *path, unsigned flags, struct err *e) {
    return want_at(b, path, path, flags, e);
}

static int want_if_there(struct builder *b, const char *path, struct err *e) {
    struct stat st;
    return stat(path, &st) < 0 ? 0 : want(b, path, MOUNT_RO | MOUNT_NODEV, e);
}

/* Directories whose content libraries need; small files of /etc are copied later. */
static const char *const etc_dirs[] = {"/etc/alternatives", "/etc/fonts", "/etc/ssl"};
static const char *const etc_files[] = {"ld.so.cache",    "localtime", "timezone", "mime.types",
                                        "services",       "protocols", "rpc",      "matplotlibrc",
                                        "debian_version", "os-release"};
static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
/* Top-level directories of the host that are links into /usr on merged systems. */
static const char *const usr_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* Every sandbox has these for itself, or as links: what a profile names there would not be seen. */
static const char *const own_places[] = {"/tmp", "/var/tmp",   "/proc",      "/dev",
                                         "/sys", "/workspace", "/run/cloche"};

static int check_place(const char *path, struct err *e) {
    for (unsigned i = 0; i < sizeof own_places / sizeof *own_places; i++) {
        size_t n = strlen(own_places[i]);
        if (strncmp(path, own_places[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return err_set(e, EINVAL, "%s: a sandbox has a %s of its own; use another place", path,
                           own_places[i]);
    }
    return 0;
}

static int want_aside(struct builder *b, const struct root_mount *m, const char *aside,
                      struct err *e) {
    if (want_at(b, m->host, aside, MOUNT_NODEV | (m->writable ? 0 : MOUNT_RO), e) < 0)
        return -1;
    return b->binds[b->nbinds - 1].dir ? 0 : err_set(e, ENOTDIR, "%s is no directory", m->host);
}

/* For the workspaces, which are not there yet. */
static int want_mounts(struct builder *b, const struct root_plan *p, struct err *e) {
    char aside[64];
    for (unsigned i = 0; i < p->nmounts; i++) {
        snprintf(aside, sizeof aside, ASIDE "/%u", i);
        if (want_aside(b, &p->mounts[i], aside, e) < 0)
            return err_wrap(e, "live_bind");
    }
    for (unsigned i = 0; i < p->nallowed; i++) {
        snprintf(aside, sizeof aside, ALLOWED, i);
        if (want_aside(b, &p->allowed[i], aside, e) < 0)
            return err_wrap(e, "bind_allow");
    }
    if (p->trees[0] && want_aside(b, &(struct root_mount){.host = p->trees}, TREES, e) < 0)
        return err_wrap(e, "tenant_profiles_dir");
    return 0;
}

static int open_aside(const char *aside, int *ret_fd, struct err *e) {
    *ret_fd = open(aside, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, "open %s", aside) : 0;
}

int root_allowed(unsigned i, int *ret_fd, struct err *e) {
    char aside[64];
    snprintf(aside, sizeof aside, ALLOWED, i);
    return open_aside(aside, ret_fd, e);
}

int root_trees(int *ret_fd, struct err *e) {
    return open_aside(TREES, ret_fd, e);
}

/* /etc/python3.11 and its like hold Debian's sitecustomize. */
static int want_python_etc(struct builder *b, struct err *e) {
    DIR *d = opendir("/etc");
    if (!d)
        return 0;
    int r = 0;
    for (struct dirent *ent; r == 0 && (ent = readdir(d));) {
        char path[300];
        snprintf(path, sizeof path, "/etc/%s", ent->d_name);
        if (strncmp(ent->d_name, "python3", 7) == 0)
            r = want_if_there(b, path, e);
    }
    closedir(d);
    return r;
}

static int collect(struct builder *b, const struct root_plan *p, struct err *e) {
    if (want(b, "/usr", MOUNT_RO | MOUNT_NODEV, e) < 0 || want(b, "/proc", 0, e) < 0 ||
        want_at(b, PROC_UUID, PROC_UUID_MADE, MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC, e) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof usr_links / sizeof *usr_links; i++) {
        char path[16];
        struct stat st;
        snprintf(path, sizeof path, "/%s", usr_links[i]);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && want_if_there(b, path, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof etc_dirs / sizeof *etc_dirs; i++) {
        if (want_if_there(b, etc_dirs[i], e) < 0)
            return -1;
    }
    if (want_python_etc(b, e) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/%s", devices[i]);
        /* Read-only: a device can be written to all the same, but not its times. */
        if (want(b, path, MOUNT_RO | MOUNT_NOEXEC, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < p->nbinds; i++) {
        if (check_place(p->binds[i], e) < 0 || want(b, p->binds[i], MOUNT_RO | MOUNT_NODEV, e) < 0)
            return err_wrap(e, "read-only path");
    }
    if (p->wheels[0] &&
        want_at(b, p->wheels, ROOT_WHEELS, MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC, e) < 0)
        return err_wrap(e, "wheels");
    return want_mounts(b, p, e);
}

static char copy_space[SMALL];

/* `from` is an open descriptor of a host file. */
static int copy_fd(int root, const char *to, int from, struct err *e) {
    size_t len;
    if (fd_read_all(from, copy_space, sizeof copy_space, &len, e) < 0)
        return err_wrap(e, "%s", to);
    return tree_put(root, to, copy_space, len, e);
}

struct own_files {
    int dir[2]; /* libexec and the cell package */
    int etc;
    const char *python;
};

static int link_at(int root, const char *target, const char *path, struct err *e) {
    if (tree_make_way(root, path, false, e) < 0)
        return -1;
    return symlinkat(target, root, path) < 0 ? err_sys(e, "link %s", path) : 0;
}

/* py/cell/customize.py is in the package for its Python, and where PYTHONPATH leads every Python of
 * a live sandbox. `name` is that of the file or of what was compiled of it. */
static int link_customize(int root, const char *name, bool compiled, struct err *e) {
    static const char first[] = "customize.";
    char target[300], path[300];
    if (strncmp(name, first, sizeof first - 1) != 0)
        return 0;
    snprintf(target, sizeof target, "%s%s", compiled ? "../../cell/__pycache__/" : "../cell/",
             name);
    snprintf(path, sizeof path, "run/cloche/tools/%ssite%s", compiled ? "__pycache__/" : "", name);
    return link_at(root, target, path, e);
}

static int copy_own(int root, const struct own_files *own, struct err *e) {
    AUTO_FD so = openat(own->dir[0], "cloche_zygote.abi3.so", O_RDONLY | O_CLOEXEC);
    if (so < 0)
        return err_sys(e, "cloche_zygote.abi3.so");
    if (copy_fd(root, "run/cloche/cloche_zygote.abi3.so", so, e) < 0)
        return -1;
    int listing = dup(own->dir[1]);
    DIR *d = listing < 0 ? NULL : fdopendir(listing);
    if (!d)
        return err_sys(e, "list the cell package");
    int r = 0;
    for (struct dirent *ent; r == 0 && (ent = readdir(d));) {
        size_t n = strlen(ent->d_name);
        bool source = n > 3 && strcmp(ent->d_name + n - 3, ".py") == 0;
        bool compiled = n > 4 && strcmp(ent->d_name + n - 4, ".pyc") == 0;
        if (!source && !compiled)
            continue;
        char to[300];
        snprintf(to, sizeof to, "run/cloche/cell/%s%s", compiled ? "__pycache__/" : "",
                 ent->d_name);
        AUTO_FD fd = openat(own->dir[1], ent->d_name, O_RDONLY | O_CLOEXEC);
        r = fd < 0 ? err_sys(e, "%s", ent->d_name) : copy_fd(root, to, fd, e);
        if (r == 0)
            r = link_customize(root, ent->d_name, compiled, e);
    }
    closedir(d);
    return r;
}

static int put_script(int root, const char *path, const char *text, struct err *e) {
    if (tree_put_text(root, path, text, e) < 0)
        return -1;
    return fchmodat(root, path, 0755, 0) < 0 ? err_sys(e, "chmod %s", path) : 0;
}

/* Scripts, and no links: an interpreter of a virtual environment knows it by its own path. */
static int name_python(int root, const char *python, struct err *e) {
    char text[PATH_MAX + 40];
    if (strchr(python, '\''))
        return 0;
    snprintf(text, sizeof text, "#!/bin/sh\nexec '%s' \"$@\"\n", python);
    if (put_script(root, "run/cloche/bin/python", text, e) < 0 ||
        put_script(root, "run/cloche/bin/python3", text, e) < 0)
        return -1;
    /* The profile's Python has a pip, or is brought one: customize.py. */
    snprintf(text, sizeof text, "#!/bin/sh\nexec '%s' -m pip \"$@\"\n", python);
    if (put_script(root, "run/cloche/tools/bin/pip", text, e) < 0)
        return -1;
    return put_script(root, "run/cloche/tools/bin/pip3", text, e);
}

static int fill_etc(int root, const struct own_files *own, struct err *e) {
    /* The name server answers where there is a network (egress/anyip.h); else the address has no
     * route inside: a look-up fails at once, and counts. */
    static const struct {
        const char *path, *text;
    } made[] = {
        {"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                       "user:x:1000:1000:user:/tmp:/bin/bash\n"
                       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
        {"etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
        {"etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"},
        {"etc/hostname", "sandbox\n"},
        {"etc/resolv.conf", "nameserver 10.0.2.3\noptions timeout:2 attempts:2\n"},
        {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\n"
                              "services: files\nprotocols: files\n"},
        {"etc/host.conf", "multi on\n"},
    };
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
        if (tree_put_text(root, made[i].path, made[i].text, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof etc_files / sizeof *etc_files; i++) {
        AUTO_FD fd = openat(own->etc, etc_files[i], O_RDONLY | O_CLOEXEC);
        char to[64];
        snprintf(to, sizeof to, "etc/%s", etc_files[i]);
        if (fd >= 0 && copy_fd(root, to, fd, e) < 0)
            return -1;
    }
    return 0;
}

static int fill_links(int root, struct err *e) {
    static const char *const links[][2] = {
        {"/proc/self/fd", "dev/fd"},
        {"/proc/self/fd/0", "dev/stdin"},
        {"/proc/self/fd/1", "dev/stdout"},
        {"/proc/self/fd/2", "dev/stderr"},
        {"pts/ptmx", "dev/ptmx"},
        {"/proc/self/mounts", "etc/mtab"},
        {"/tmp", "var/tmp"},
    };
    for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
        if (link_at(root, links[i][0], links[i][1], e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof usr_links / sizeof *usr_links; i++) {
        char host[16], to[256];
        snprintf(host, sizeof host, "/%s", usr_links[i]);
        ssize_t n = readlink(host, to, sizeof to - 1);
        if (n <= 0)
            continue;
        to[n] = '\0';
        if (symlinkat(to, root, usr_links[i]) < 0)
            return err_sys(e, "link %s", usr_links[i]);
    }
    return 0;
}

/* A profile may bring something of that name; then that is what its programs look for. */
static int link_other(const struct builder *b, int root, struct err *e) {
    size_t n = strlen(OTHER);
    for (unsigned i = 0; i < b->nbinds; i++) {
        const char *path = b->binds[i].path;
        if (strncmp(path, OTHER, n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return 0;
    }
    return symlinkat(WORKSPACE, root, &OTHER[1]) < 0 ? err_sys(e, "link " OTHER) : 0;
}

static int attach_binds(struct builder *b, int root, struct err *e) {
    for (unsigned i = 0; i < b->nbinds; i++) {
        struct bind *in = &b->binds[i];
        const char *path = in->path + 1; /* relative to the root */
        if (tree_make_way(root, path, in->dir, e) < 0)
            return -1;
        if (!in->dir) {
            AUTO_FD fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            if (fd < 0)
                return err_sys(e, "create %s", path);
        }
        if (mount_attach(in->fd, root, path, e) < 0)
            return -1;
    }
    return 0;
}

static int fill_root(struct builder *b, int root, const struct own_files *own, uint32_t memory_mb,
                     struct err *e) {
    static const char *const dirs[] = {"workspace", "tmp",  "proc", "dev/pts",
                                       "dev/shm",   "root", "sys",  &ROOT_TREE[1]};
    for (unsigned i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        if (tree_make_way(root, dirs[i], true, e) < 0)
            return -1;
    }
    if (fill_links(root, e) < 0 || link_other(b, root, e) < 0 || fill_etc(root, own, e) < 0 ||
        copy_own(root, own, e) < 0 || name_python(root, own->python, e) < 0 ||
        proc_make(root, memory_mb, e) < 0)
        return -1;
    return attach_binds(b, root, e);
}

static int enter(struct err *e) {
    if (chdir(STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return err_sys(e, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0)
        return err_sys(e, "drop the old root");
    if (chdir("/") < 0)
        return err_sys(e, "chdir /");
    return mount_set("/", MOUNT_RO | MOUNT_NODEV, false, e);
}

int root_build(const struct root_plan *p, struct err *e) {
    struct builder b = {.nbinds = 0};
    AUTO_FD libexec = open(p->libexec, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD pylib = open(p->pylib, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (libexec < 0 || pylib < 0 || etc < 0)
        return err_sys(e, "open %s", libexec < 0 ? p->libexec : pylib < 0 ? p->pylib : "/etc");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, "make mounts private");
    struct own_files own = {.dir = {libexec, pylib}, .etc = etc, .python = p->python};
    int r = collect(&b, p, e);
    /* What follows is made by the root of our user namespace: an ordinary user could read its own
     * files above, but has no id there to own new ones with. */
    if (r == 0 && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        r = err_sys(e, "become root of the user namespace");
    if (r == 0)
        r = mount_fs("tmpfs", STAGE, 0, "mode=0755,size=64m", e);
    AUTO_FD root = r < 0 ? -1 : open(STAGE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = root < 0 ? err_sys(e, "open the new root") : fill_root(&b, root, &own, p->memory_mb, e);
    builder_done(&b);
    return r < 0 ? r : enter(e);
}

struct place_own {
    const char *dir, *to;
    mode_t mode;
};

static int make_own(const struct place_own *place, uint32_t uid, struct err *e) {
    if (mkdir(place->dir, place->mode) < 0 || chown(place->dir, uid, uid) < 0)
        return err_sys(e, "make %s", place->dir);
    if (mount(place->dir, place->to, NULL, MS_BIND, NULL) < 0)
        return err_sys(e, "mount %s", place->to);
    return 0;
}

/* One tmpfs for all that a sandbox can write to, since making and unmaking one costs more than all
 * else here: it is mounted at /workspace, and its directories over /tmp, /dev/shm and itself. */
static int mount_writable(const struct root_private *p, struct err *e) {
    static const struct place_own places[] = {{"/workspace/tmp", "/tmp", 01777},
                                              {"/workspace/shm", "/dev/shm", 01777},
                                              {"/workspace/own", "/workspace", 0755}};
    char data[64];
    snprintf(data, sizeof data, "size=%um,nr_inodes=%u,mode=0755", p->disk_mb, p->disk_files);
    if (mount_fs("tmpfs", "/workspace", MOUNT_NODEV, data, e) < 0)
        return -1;
    int r = 0;
    mode_t mask = umask(0); /* nobody is here yet who could use the modes too soon */
    for (unsigned i = 0; r == 0 && i < sizeof places / sizeof *places; i++)
        r = make_own(&places[i], p->uid, e);
    umask(mask);
    return r;
}

/* The directories on the way are the sandbox's; the last one is covered. */
static int make_place(char *path, uint32_t uid, struct err *e) {
    for (char *at = strchr(path + sizeof WORKSPACE, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chown(path, uid, uid) < 0)
            return err_sys(e, "make %s", path);
        *at = '/';
    }
    return mkdir(path, 0755) < 0 ? err_sys(e, "make %s", path) : 0;
}

/* Before any program runs here: nobody else is there who could change a path. */
static int mount_hosts(const struct root_private *p, struct err *e) {
    for (unsigned i = 0; i < p->nmounts; i++) {
        char aside[64], path[256];
        snprintf(aside, sizeof aside, ASIDE "/%u", i);
        int n = snprintf(path, sizeof path, WORKSPACE "/%s", p->mounts[i].path);
        if (n < 0 || (size_t)n >= sizeof path)
            return err_set(e, ENAMETOOLONG, "%.100s", p->mounts[i].path);
        if (make_place(path, p->uid, e) < 0)
            return -1;
        /* With what is mounted in it: only the host could leave a part of it out. */
        if (mount(aside, path, NULL, MS_BIND | MS_REC, NULL) < 0)
            return err_sys(e, "mount %s", path);
    }
    /* With an empty directory in which nobody shows anything: of one that has a locked mount below
     * it, as /root may, no bind can be made. */
    if (p->nmounts + p->nallowed + p->has_trees && mount(ROOT_TREE, ASIDE, NULL, MS_BIND, NULL) < 0)
        return err_sys(e, "cover " ASIDE);
    return 0;
}

/* Read only, so that where there is a single id nobody gives himself the right to open more. */
static int mount_terminals(const struct root_private *p, struct err *e) {
    char data[96];
    snprintf(data, sizeof data, "newinstance,ptmxmode=%s,mode=0620,uid=%u,max=%u",
             p->terminals ? "0666" : "0000", p->uid, COMMAND_TERMINALS + p->terminals);
    return mount_fs("devpts", "/dev/pts", MOUNT_NOEXEC | (p->terminals ? 0 : MOUNT_RO), data, e);
}

int root_private(const struct root_private *p, struct err *e) {
    if (mount_writable(p, e) < 0 || mount_hosts(p, e) < 0 || mount_terminals(p, e) < 0)
        return -1;
    return proc_mount(e);
}

int root_resize(const struct root_private *p, struct err *e) {
    char data[64];
    snprintf(data, sizeof data, "size=%um,nr_inodes=%u", p->disk_mb, p->disk_files);
    if (mount(NULL, "/workspace", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, data) < 0)
        return err_sys(e, "resize /workspace");
    return 0;
}
