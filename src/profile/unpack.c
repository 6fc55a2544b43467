/* See unpack.h. */

#include "profile/unpack.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/outdir.h"
#include "pack/unpacker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct unpacking {
    struct environment *x; /* borrowed */
    struct outdir to;
    struct buf site; /* lib/python3.11/site-packages */
    const char *base;
};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with) {
    size_t n = strlen(text), m = strlen(with);
    return n >= m && strcmp(text + n - m, with) == 0;
}

/* The first part of a path, and what follows it; "" when there is nothing. */
static const char *rest_of(const char *path) {
    const char *slash = strchr(path, '/');
    return slash ? slash + 1 : "";
}

/* SECURITY: site reads all .pth files of its directory and imports these two, in the zygote. */
static bool is_early(const char *path) {
    AUTO_FREE char *first = xstrndup(path, strcspn(path, "/"));
    return ends(first, ".pth") || begins(first, "sitecustomize") || begins(first, "usercustomize");
}

/* SECURITY: an interpreter looks for files beside itself. */
static bool is_program(const char *name) {
    return *name && !strchr(name, '/') && name[0] != '.' && !begins(name, "python") &&
           !begins(name, "pybuilddir");
}

/* Where it goes; false: it is left out. */
static bool find_place(struct unpacking *u, const char *path, struct buf *ret) {
    const char *rest = rest_of(path);
    if (begins(path, "site-packages/") && *rest && !is_early(rest))
        buf_addf(ret, "%s/%s", u->site.data, rest);
    else if ((begins(path, "bin/") && is_program(rest)) || begins(path, "share/") ||
             begins(path, "etc/"))
        buf_adds(ret, path);
    return ret->len > 0;
}

static int unpack_file(struct unpacking *u, struct unpacker *in, const struct pack_entry *entry,
                       const char *to, struct err *e) {
    AUTO_FD fd = open(u->base, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const void *data;
    size_t len;
    uint64_t at, size = entry->size;
    int r;
    if (fd < 0)
        return err_user(e, "output_failed", "%s: %s", u->base, strerror(errno));
    while ((r = unpacker_data(in, &data, &len, &at, e)) > 0) {
        if (fd_write_all(fd, data, len, e) < 0)
            return err_user(e, "output_failed", "%s: %s", u->base, strerror(e->code));
    }
    if (r < 0)
        return -1;
    if (fchmod(fd, entry->mode & S_IXUSR ? 0700 : 0600) < 0)
        return err_sys(e, "%s", to);
    u->x->bytes += size;
    u->x->files++;
    return outdir_write(&u->to, to, fd, size, e);
}

static int make_parents(struct unpacking *u, const char *path, struct err *e) {
    AUTO_FREE char *copy = xstrdup(path);
    for (char *at = strchr(copy, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (outdir_mkdir(&u->to, copy, e) < 0)
            return -1;
        *at = '/';
    }
    return 0;
}

static int unpack_entry(struct unpacking *u, struct unpacker *in, const struct pack_entry *entry,
                        struct err *e) {
    AUTO_BUF to = BUF_INIT;
    bool is_root = strchr(entry->path, '/') == NULL && entry->type == PACK_DIRECTORY;
    if (is_root)
        return 0;
    if (entry->type == PACK_SYMLINK || !find_place(u, entry->path, &to)) {
        u->x->skipped++;
        return 0;
    }
    return entry->type == PACK_DIRECTORY ? outdir_mkdir(&u->to, to.data, e)
                                         : unpack_file(u, in, entry, to.data, e);
}

static int unpack_all(struct unpacking *u, int archive, struct err *e) {
    struct unpacker *in;
    struct pack_entry entry;
    int r;
    if (unpacker_new(archive, &in, e) < 0)
        return -1;
    while ((r = unpacker_next(in, &entry, e)) > 0) {
        if (unpack_entry(u, in, &entry, e) < 0) {
            r = -1;
            break;
        }
    }
    unpacker_free(in);
    return r;
}

/* What makes a virtual environment of it. */
static int write_own(struct unpacking *u, struct err *e) {
    const struct environment *x = u->x;
    AUTO_BUF text = BUF_INIT;
    const char *slash = strrchr(x->python, '/');
    buf_addf(&text, "home = %.*s\nversion = %s\ninclude-system-site-packages = %s\n",
             slash ? (int)(slash - x->python) : 0, x->python, x->version,
             x->system_packages ? "true" : "false");
    AUTO_FD dir = open(x->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD cfg =
        dir < 0 ? -1 : openat(dir, "pyvenv.cfg", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (cfg < 0 || fd_write_all(cfg, text.data, text.len, e) < 0 ||
        symlinkat(x->python, dir, "bin/python3") < 0 || symlinkat("python3", dir, "bin/python") < 0)
        return err_user(e, "output_failed", "%s: %s", x->path, strerror(errno));
    return 0;
}

int unpack_environment(int archive, struct environment *x, struct err *e) {
    struct unpacking u = {.x = x, .to = {.path = x->path, .fd = -1}, .site = BUF_INIT};
    const char *first = strchr(x->version, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    buf_addf(&u.site, "lib/python%.*s/site-packages",
             (int)((second ? second : x->version + strlen(x->version)) - x->version), x->version);
    u.base = x->path;
    x->bytes = x->files = x->skipped = 0;
    int rc = outdir_mkdir(&u.to, "bin", e);
    AUTO_BUF below = BUF_INIT;
    buf_addf(&below, "%s/x", u.site.data);
    if (rc == 0)
        rc = make_parents(&u, below.data, e);
    if (rc == 0)
        rc = unpack_all(&u, archive, e);
    if (rc == 0)
        rc = write_own(&u, e);
    outdir_done(&u.to);
    buf_done(&u.site);
    return rc;
}
