/* See environment.h. */

#include "pack/environment.h"

#include "base/buf.h"
#include "base/fd.h"
#include "pack/unpacker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES (1u << 20) /* and so many entries, in a step */
#define STEP_FILES 64
#define DEPTH_MAX  64

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

/* Whoever removes it has each of them open. */
static bool is_deep(const char *path) {
    unsigned n = 0;
    for (; *path; path++)
        n += *path == '/';
    return n > DEPTH_MAX;
}

/* Where it goes; false: it is left out. */
static bool find_place(struct environment *x, const char *path, struct buf *ret) {
    const char *rest = rest_of(path);
    if (begins(path, "site-packages/") && *rest && !is_early(rest))
        buf_addf(ret, "%s/%s", x->site.data, rest);
    else if ((begins(path, "bin/") && is_program(rest)) || begins(path, "share/") ||
             begins(path, "etc/"))
        buf_adds(ret, path);
    return ret->len > 0;
}

static int cannot_write(const struct environment *x, int code, struct err *e) {
    err_user(e, "output_failed", "%s: %s", x->path, strerror(code));
    e->code = code;
    return -1;
}

static int unpack_file(struct environment *x, const struct pack_entry *entry, const char *to,
                       struct err *e) {
    AUTO_FD fd = open(x->path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const void *data;
    size_t len;
    uint64_t at, size = entry->size;
    int r;
    if (fd < 0)
        return cannot_write(x, errno, e);
    while ((r = unpacker_data(x->in, &data, &len, &at, e)) > 0) {
        if (fd_write_all(fd, data, len, e) < 0)
            return cannot_write(x, e->code, e);
    }
    if (r < 0)
        return -1;
    if (fchmod(fd, entry->mode & S_IXUSR ? 0700 : 0600) < 0)
        return err_sys(e, "%s", to);
    x->bytes += size;
    x->files++;
    return outdir_write(&x->to, to, fd, size, e);
}

static int make_parents(struct environment *x, const char *path, struct err *e) {
    AUTO_FREE char *copy = xstrdup(path);
    for (char *at = strchr(copy, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (outdir_mkdir(&x->to, copy, e) < 0)
            return -1;
        *at = '/';
    }
    return 0;
}

/* SECURITY: an archive of zeros is a thousandth of them. What is left out takes time, too. */
static int has_room(struct environment *x, uint64_t size, struct err *e) {
    if (x->most && (size > x->most || x->seen > x->most - size))
        return err_user(e, "too_large", "it has more than %llu MB",
                        (unsigned long long)x->most >> 20);
    x->seen += size;
    return 0;
}

static int unpack_entry(struct environment *x, const struct pack_entry *entry, struct err *e) {
    AUTO_BUF to = BUF_INIT;
    bool is_root = strchr(entry->path, '/') == NULL && entry->type == PACK_DIRECTORY;
    if (has_room(x, entry->type == PACK_FILE ? entry->size : 0, e) < 0)
        return -1;
    if (is_root)
        return 0;
    if (entry->type == PACK_SYMLINK || is_deep(entry->path) || !find_place(x, entry->path, &to)) {
        x->skipped++;
        return 0;
    }
    return entry->type == PACK_DIRECTORY ? outdir_mkdir(&x->to, to.data, e)
                                         : unpack_file(x, entry, to.data, e);
}

/* What makes a virtual environment of it. */
static int write_own(struct environment *x, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    const char *slash = x->python ? strrchr(x->python, '/') : NULL;
    if (!x->python)
        return 0;
    buf_addf(&text, "home = %.*s\nversion = %s\ninclude-system-site-packages = %s\n",
             slash ? (int)(slash - x->python) : 0, x->python, x->version,
             x->system_packages ? "true" : "false");
    AUTO_FD dir = open(x->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD cfg =
        dir < 0 ? -1 : openat(dir, "pyvenv.cfg", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (cfg < 0 || fd_write_all(cfg, text.data, text.len, e) < 0 ||
        symlinkat(x->python, dir, "bin/python3") < 0 || symlinkat("python3", dir, "bin/python") < 0)
        return cannot_write(x, errno, e);
    return 0;
}

int environment_begin(struct environment *x, int archive, struct err *e) {
    const char *first = strchr(x->version, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    x->to = (struct outdir){.path = x->path, .fd = -1, .dirs = x->dirs};
    x->site = (struct buf)BUF_INIT;
    x->in = NULL;
    buf_addf(&x->site, "lib/python%.*s/site-packages",
             (int)((second ? second : x->version + strlen(x->version)) - x->version), x->version);
    x->seen = x->bytes = x->files = x->skipped = 0;
    AUTO_BUF below = BUF_INIT;
    buf_addf(&below, "%s/x", x->site.data);
    if (outdir_mkdir(&x->to, "bin", e) < 0 || make_parents(x, below.data, e) < 0)
        return -1;
    return unpacker_new(archive, &x->in, e);
}

int environment_step(struct environment *x, struct err *e) {
    uint64_t before = x->bytes;
    for (unsigned n = 0; n < STEP_FILES && x->bytes - before < STEP_BYTES; n++) {
        struct pack_entry entry;
        int r = unpacker_next(x->in, &entry, e);
        if (r > 0)
            r = unpack_entry(x, &entry, e) < 0 ? -1 : 1;
        else if (r == 0)
            return write_own(x, e);
        if (r < 0)
            return -1;
    }
    return 1;
}

void environment_end(struct environment *x) {
    unpacker_free(x->in);
    x->in = NULL;
    outdir_done(&x->to);
    buf_done(&x->site);
}

int environment_unpack(struct environment *x, int archive, struct err *e) {
    int r = environment_begin(x, archive, e);
    if (r == 0) {
        while ((r = environment_step(x, e)) > 0)
            ;
    }
    environment_end(x);
    return r;
}
