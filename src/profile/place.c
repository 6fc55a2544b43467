/* See place.h. */

#include "profile/place.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/rmtree.h"
#include "base/safedir.h"
#include "config/config.h"
#include "config/made.h"
#include "config/options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLACK_S 3600

static int place_failed(const struct place *p, const char *what, struct err *e) {
    return err_user(e, "output_failed", "%s/%s: %s: %s", p->dir, p->name, what, strerror(errno));
}

static int lock_name(struct place *p, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, ".%s.lock", p->name);
    p->lock = openat(p->fd, path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (p->lock < 0)
        return place_failed(p, "lock", e);
    if (flock(p->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return err_user(e, "build_running", "somebody is making or removing profile %s just now",
                    p->name);
}

int place_open(const struct options *o, const char *name, struct place *ret, struct err *e) {
    ret->dir = options_text(o, "profiles_dir");
    ret->name = name;
    if (!name || !config_name_is_good(name) || strcmp(name, "auto") == 0)
        return err_user(e, "bad_value",
                        "profile: the name has 1 to 32 of a-z 0-9 _ - and is not auto");
    if (ret->dir[0] != '/')
        return err_user(e, "bad_value", "profiles_dir is %s; it must be an absolute path",
                        ret->dir);
    if (strncmp(ret->dir, "/tmp/", 5) == 0 || strncmp(ret->dir, "/var/tmp/", 9) == 0)
        return err_user(e, "bad_value",
                        "profiles_dir is %s; a sandbox has a /tmp of its own and could not see it",
                        ret->dir);
    if (safedir_make(ret->dir, geteuid() == 0 ? 0755 : 0700, &ret->fd, e) < 0 ||
        lock_name(ret, e) < 0)
        return -1;
    buf_addf(&ret->fresh, "%s/.%s.new", ret->dir, name);
    return 0;
}

static void remove_fresh(const struct place *p) {
    if (p->lock >= 0 && p->fresh.len)
        rmtree(p->fd, strrchr(p->fresh.data, '/') + 1);
}

void place_done(struct place *p) {
    remove_fresh(p);
    fd_close(&p->lock);
    fd_close(&p->fd);
    buf_done(&p->fresh);
    buf_done(&p->old);
}

bool place_has(const struct place *p) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "%s/" MADE_FILE, p->name);
    return faccessat(p->fd, path.data, F_OK, 0) == 0;
}

int place_begin(struct place *p, struct err *e) {
    remove_fresh(p);
    return mkdir(p->fresh.data, 0755) < 0 ? place_failed(p, "make it", e) : 0;
}

void place_forget(struct place *p, const char *name) {
    AUTO_FD fd = open(p->fresh.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        rmtree(fd, name);
}

/* Takes a name away; its time counts from now. */
static int put_aside(struct place *p, const char *name, struct err *e) {
    char id[ID_MAX];
    buf_clear(&p->old);
    buf_addf(&p->old, ".%s.%s", p->name, id_make("old-", id, sizeof id));
    if (renameat(p->fd, name, p->fd, p->old.data) < 0)
        return place_failed(p, "move it away", e);
    (void)utimensat(p->fd, p->old.data, NULL, 0);
    return 0;
}

int place_retire(struct place *p, struct err *e) {
    return put_aside(p, p->name, e);
}

int place_commit(struct place *p, struct err *e) {
    const char *fresh = strrchr(p->fresh.data, '/') + 1;
    AUTO_FD fd = openat(p->fd, fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) < 0)
        return place_failed(p, "write it", e);
    if (renameat2(p->fd, fresh, p->fd, p->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EEXIST || renameat2(p->fd, fresh, p->fd, p->name, RENAME_EXCHANGE) < 0)
        return place_failed(p, "put it in place", e);
    return put_aside(p, fresh, e);
}

void place_drop(struct place *p) {
    if (p->old.len)
        rmtree(p->fd, p->old.data);
}

void place_sweep(const struct place *p, bool is_used, uint32_t live_s) {
    int copy = openat(p->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        fd_close(&copy);
        return;
    }
    time_t before = time(NULL) - (time_t)live_s - SLACK_S;
    for (struct dirent *ent; (ent = readdir(d));) {
        struct stat st;
        if (ent->d_name[0] != '.' || !strstr(ent->d_name, ".old-") ||
            fstatat(copy, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!is_used || st.st_mtime < before)
            rmtree(copy, ent->d_name);
    }
    closedir(d);
}
