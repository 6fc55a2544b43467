/* See list.h. Bounded by the request, by the bytes of the answer and by MAX_NAMES of names held;
 * the tree itself by the tmpfs's inodes. Whoever reads an answer makes JSON of it, up to a dozen
 * times as long. */

#include "init/list.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES    (1u << 20)
#define CHANGES_BYTES (256u << 10)
#define MAX_NAMES     (32u << 20)

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int open_sub(int dir, const char *name) {
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- the files of a program that has ended ---- */

static void add_changed(struct changed *w, const struct stat *st, size_t len) {
    if ((uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec < w->since_ns)
        return;
    if (w->count == w->most || w->out.len > CHANGES_BYTES) {
        w->cut = w->full = true;
        return;
    }
    uint64_t size = (uint64_t)st->st_size;
    uint32_t n = (uint32_t)len;
    buf_add(&w->out, &size, sizeof size);
    buf_add(&w->out, &n, sizeof n);
    buf_add(&w->out, w->path, len);
    w->count++;
}

/* `len` is the length of w->path, which names `dir`. Takes dir. */
static void changes_in(struct changed *w, int dir, size_t len, uint32_t depth) {
    DIR *d = fdopendir(dir);
    if (!d) {
        fd_close(&dir);
        return;
    }
    for (struct dirent *ent; !w->full && (ent = readdir(d));) {
        size_t n = strlen(ent->d_name), sep = len ? 1 : 0;
        struct stat st;
        if (is_dots(ent->d_name) || len + sep + n >= sizeof w->path ||
            fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (sep)
            w->path[len] = '/';
        memcpy(w->path + len + sep, ent->d_name, n);
        if (st.st_dev != w->dev) {
            continue; /* a directory of the host: it may be huge, and others write to it as well */
        } else if (S_ISREG(st.st_mode)) {
            add_changed(w, &st, len + sep + n);
        } else if (S_ISDIR(st.st_mode) && depth < w->depth) {
            int sub = open_sub(dirfd(d), ent->d_name);
            if (sub >= 0)
                changes_in(w, sub, len + sep + n, depth + 1);
        } else if (S_ISDIR(st.st_mode)) {
            w->cut = true;
        }
    }
    closedir(d);
}

void list_changes(struct changed *w, int dir) {
    struct stat st;
    w->dev = fstat(dir, &st) < 0 ? 0 : st.st_dev;
    changes_in(w, dir, 0, 0);
}

/* ---- the names in one directory, sorted ---- */

struct names {
    struct buf text; /* one behind the other, each with its NUL */
    uint32_t *at;    /* owned: where they begin; sorted */
    unsigned n;
};

static void names_done(struct names *s) {
    buf_done(&s->text);
    free(s->at);
}

static int by_name(const void *a, const void *b, void *text) {
    const char *t = text;
    return strcmp(t + *(const uint32_t *)a, t + *(const uint32_t *)b);
}

/* `held` counts the bytes of names in all directories that are open. */
static int names_read(struct names *s, DIR *d, size_t held) {
    unsigned cap = 0;
    for (struct dirent *ent; (ent = readdir(d));) {
        if (is_dots(ent->d_name))
            continue;
        if (held + s->text.len > MAX_NAMES)
            return errno = EFBIG, -1;
        if (s->n == cap) {
            cap = cap ? cap * 2 : 64;
            s->at = xrealloc(s->at, cap * sizeof *s->at);
        }
        s->at[s->n++] = (uint32_t)s->text.len;
        buf_add(&s->text, ent->d_name, strlen(ent->d_name) + 1);
    }
    if (s->n)
        qsort_r(s->at, s->n, sizeof *s->at, by_name, s->text.data);
    return 0;
}

/* ---- pages ---- */

struct pager {
    struct listing *l;
    char path[ENTRY_PATH_MAX + 1];
    size_t held;
    bool full;
};

static enum entry_type type_of(mode_t mode) {
    return S_ISREG(mode)   ? ENTRY_FILE
           : S_ISDIR(mode) ? ENTRY_DIRECTORY
           : S_ISLNK(mode) ? ENTRY_SYMLINK
                           : ENTRY_OTHER;
}

struct entry list_entry(const struct stat *st, const char *path, const char *target) {
    int64_t ns; /* a program can set any time: what does not fit becomes the nearest that does */
    if (__builtin_mul_overflow((int64_t)st->st_mtim.tv_sec, 1000000000, &ns) ||
        __builtin_add_overflow(ns, (int64_t)st->st_mtim.tv_nsec, &ns))
        ns = st->st_mtim.tv_sec < 0 ? 0 : INT64_MAX;
    return (struct entry){.type = type_of(st->st_mode),
                          .mode = st->st_mode & 07777,
                          .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
                          .mtime_ns = ns < 0 ? 0 : (uint64_t)ns,
                          .ino = st->st_ino,
                          .path = path,
                          .target = target};
}

void list_target(int dir, const char *name, char ret[ENTRY_PATH_MAX + 1]) {
    ssize_t n = readlinkat(dir, name, ret, ENTRY_PATH_MAX);
    ret[n < 0 ? 0 : n] = '\0';
}

static void add(struct pager *g, int dir, const char *name, const struct stat *st, bool deep) {
    struct listing *l = g->l;
    char target[ENTRY_PATH_MAX + 1] = "";
    if (l->count == l->most || l->out.len > PAGE_BYTES) {
        l->cut = g->full = true;
        return;
    }
    if (S_ISLNK(st->st_mode))
        list_target(dir, name, target);
    struct entry f = list_entry(st, g->path, target);
    f.deep = deep;
    entry_put(&l->out, &f);
    l->count++;
}

/* How a name of this directory stands to `after`, the rest of the last page's last path: below 0,
 * it was on an earlier page; 0, that path leads through it. */
static int stands(const char *name, const char *after) {
    size_t n = strcspn(after, "/");
    int r = strncmp(name, after, n);
    return r ? r : name[n] != '\0';
}

static int list_in(struct pager *g, int dir, size_t len, const char *after, unsigned depth);

static int list_one(struct pager *g, int dir, size_t len, const char *after, unsigned depth) {
    const char *name = g->path + len;
    size_t all = len + strlen(name);
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* gone meanwhile */
    bool enter = g->l->recursive && S_ISDIR(st.st_mode);
    if (!after)
        add(g, dir, name, &st, enter && depth >= ENTRY_DEPTH_MAX);
    if (g->full || !enter || depth >= ENTRY_DEPTH_MAX)
        return 0;
    int sub = open_sub(dir, name);
    if (sub < 0)
        return 0;
    const char *rest = after ? strchr(after, '/') : NULL;
    return list_in(g, sub, all, rest ? rest + 1 : NULL, depth + 1);
}

/* g->path is the path of `dir`, of len bytes; what is in it has `depth` names. Takes dir. */
static int list_in(struct pager *g, int dir, size_t len, const char *after, unsigned depth) {
    struct names names = {.text = BUF_INIT};
    DIR *d = fdopendir(dir);
    if (!d) {
        fd_close(&dir);
        return -1;
    }
    int r = names_read(&names, d, g->held);
    size_t held = names.text.len, start = len ? len + 1 : 0;
    g->held += held;
    for (unsigned i = 0; r == 0 && i < names.n && !g->full; i++) {
        const char *name = names.text.data + names.at[i];
        int order = after ? stands(name, after) : 1;
        if (order < 0 || start + strlen(name) > ENTRY_PATH_MAX)
            continue; /* it was on an earlier page, or its path would be too long */
        if (len)
            g->path[len] = '/';
        memcpy(g->path + start, name, strlen(name) + 1);
        r = list_one(g, dirfd(d), start, order == 0 ? after : NULL, depth);
    }
    g->path[len] = '\0';
    g->held -= held;
    names_done(&names);
    closedir(d);
    return r;
}

int list_page(struct listing *l, int dir, const char *path, const char *after) {
    struct pager g = {.l = l};
    size_t len = strlen(path);
    memcpy(g.path, path, len + 1);
    /* `after` is a whole path: the directory's own is taken off its front. */
    if (len && strncmp(after, path, len) == 0 && after[len] == '/')
        after += len + 1;
    else if (len)
        after = "";
    return list_in(&g, dir, len, *after ? after : NULL, entry_depth(path) + 1);
}
