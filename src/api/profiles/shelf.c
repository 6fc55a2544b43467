/* See shelf.h. */

#include "api/profiles/shelf.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rmtree.h"
#include "loop/crew.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX     "prf_"
#define FRESH      ".new-"
#define OLD        ".old-"
#define ABOUT_MOST (2u << 20)
#define ABOUT_DEEP 8
#define IN_A_SLICE 2000 /* names that are removed */
#define NAME_LEN   80

struct removal {
    struct work work;
    int dir; /* borrowed: the server's for good */
    char name[NAME_LEN];
};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static int shelf_fail(const char *what, struct err *e) {
    int code = errno;
    err_user(e, "output_failed", "%s: %s", what, strerror(code));
    e->code = code;
    return -1;
}

/* ---- removing ---- */

static bool removal_slice(struct work *w) {
    struct removal *r = w->arg;
    unsigned budget = IN_A_SLICE;
    return !rmtree_some(r->dir, r->name, &budget);
}

static void removal_done(struct work *w) {
    free(w->arg);
}

static void remove_beside(int dir, struct crew *crew, const char *first, const char *id) {
    struct removal *r = xcalloc(1, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s%s", first, id);
    r->dir = dir;
    r->work =
        (struct work){.slice = removal_slice, .done = removal_done, .arg = r, .is_long = true};
    crew_add(crew, &r->work);
}

void shelf_remove_fresh(int dir, struct crew *crew, const char *id) {
    remove_beside(dir, crew, FRESH, id);
}

void shelf_remove_old(int dir, struct crew *crew, const char *id) {
    remove_beside(dir, crew, OLD, id);
}

/* ---- making ---- */

void shelf_fresh_path(int dir, const char *id, struct buf *to) {
    buf_addf(to, "/proc/self/fd/%d/" FRESH "%s", dir, id);
}

static int open_fresh(int dir, const char *id, struct err *e) {
    char name[NAME_LEN];
    snprintf(name, sizeof name, FRESH "%s", id);
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        shelf_fail("the profile's directory", e);
    return fd;
}

int shelf_begin(int dir, const char *id, struct err *e) {
    char name[NAME_LEN];
    snprintf(name, sizeof name, FRESH "%s", id);
    if (mkdirat(dir, name, 0755) < 0 || fchmodat(dir, name, 0755, 0) < 0)
        return shelf_fail("make the profile's directory", e);
    return 0;
}

int shelf_write_about(int dir, const char *id, const char *text, size_t len, struct err *e) {
    AUTO_FD fresh = open_fresh(dir, id, e);
    if (fresh < 0)
        return -1;
    AUTO_FD fd = openat(fresh, SHELF_ABOUT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, text, len, e) < 0 || syncfs(fd) < 0)
        return shelf_fail("write the profile", e);
    return 0;
}

static int rename_in(int dir, const char *from, const char *to, const char *id, struct err *e) {
    char old[NAME_LEN], fresh[NAME_LEN];
    snprintf(old, sizeof old, "%s%s", from, id);
    snprintf(fresh, sizeof fresh, "%s%s", to, id);
    return renameat(dir, old, dir, fresh) < 0 ? shelf_fail("rename the profile", e) : 0;
}

int shelf_commit(int dir, const char *id, struct err *e) {
    return rename_in(dir, FRESH, "", id, e);
}

int shelf_retire(int dir, const char *id, struct err *e) {
    return rename_in(dir, "", OLD, id, e);
}

/* ---- reading ---- */

static int read_about(int dir, const char *id, json_t **ret, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    size_t len = 0;
    buf_addf(&path, "%s/" SHELF_ABOUT, id);
    AUTO_FD fd = openat(dir, path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return shelf_fail(SHELF_ABOUT, e);
    if (fd_read_all(fd, buf_reserve(&text, ABOUT_MOST), ABOUT_MOST, &len, e) < 0)
        return -1;
    return json_read(text.data, len, ABOUT_DEEP, ret, e);
}

/* A copy of its own: names change while it is read. */
static DIR *open_listing(int dir) {
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        fd_close(&copy);
    return d;
}

int shelf_read(int dir, void (*fn)(void *arg, const char *id, json_t *about), void *arg,
               struct err *e) {
    DIR *d = open_listing(dir);
    if (!d)
        return shelf_fail("the directory of profiles", e);
    for (struct dirent *ent; (ent = readdir(d));) {
        json_t *about = NULL;
        struct err why;
        if (begins(ent->d_name, FRESH PREFIX))
            rmtree(dir, ent->d_name); /* half made when an earlier server died */
        if (!begins(ent->d_name, PREFIX))
            continue;
        if (read_about(dir, ent->d_name, &about, &why) == 0)
            fn(arg, ent->d_name, about);
        else
            log_error("profile cannot be read id=%s error=%s", ent->d_name, log_text(why.text));
    }
    closedir(d);
    return 0;
}

void shelf_sweep(int dir, struct crew *crew, bool (*is_used)(void *arg, const char *id),
                 void *arg) {
    DIR *d = open_listing(dir);
    if (!d)
        return;
    for (struct dirent *ent; (ent = readdir(d));) {
        const char *id = ent->d_name + sizeof OLD - 1;
        if (begins(ent->d_name, OLD PREFIX) && !is_used(arg, id))
            shelf_remove_old(dir, crew, id);
    }
    closedir(d);
}
