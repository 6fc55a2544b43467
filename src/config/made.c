/* See made.h. */

#include "config/made.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/safedir.h"
#include "config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (4u << 20)
#define DEPTH    8

/* -1 with kind "no_such_file" when there is none. */
static int open_place(const char *dir, int *ret, struct err *e) {
    struct stat st;
    AUTO_FD fd = -1;
    if (safedir_open(dir, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "%s", dir);
    if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & 022)
        return err_user(e, "foreign_path",
                        "%s: others could change the profiles there: it must be yours, and nobody "
                        "else may write to it",
                        dir);
    *ret = fd_take(&fd);
    return 0;
}

static int read_file(int place, const char *dir, const char *name, json_t **ret, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    size_t len = 0;
    buf_addf(&path, "%s/" MADE_FILE, name);
    AUTO_FD fd = openat(place, path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return err_user(e, "unknown_profile", "there is no profile %s in %s", name, dir);
    if (fd < 0 || fd_read_all(fd, buf_reserve(&text, FILE_MAX), FILE_MAX, &len, e) < 0)
        return err_user(e, "bad_config", "%s/%s cannot be read: %s", dir, path.data,
                        strerror(errno));
    if (json_read(text.data, len, DEPTH, ret, e) < 0)
        return err_wrap(e, "%s/%s", dir, path.data);
    if (json_is_object(json_object_get(*ret, "profile")))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return err_user(e, "bad_config", "%s/%s is no profile", dir, path.data);
}

int made_read_one(const char *dir, const char *name, json_t **ret, struct err *e) {
    AUTO_FD place = -1;
    *ret = NULL;
    if (!config_name_is_good(name) ||
        (open_place(dir, &place, e) < 0 && strcmp(e->kind, "no_such_file") == 0))
        return err_user(e, "unknown_profile", "there is no profile %.40s in %s", name, dir);
    return place < 0 ? -1 : read_file(place, dir, name, ret, e);
}

static int add_one(int place, const char *dir, const char *name, json_t *to, struct err *e) {
    json_auto_t *whole = NULL;
    AUTO_BUF python = BUF_INIT;
    if (read_file(place, dir, name, &whole, e) < 0)
        return strcmp(e->kind, "unknown_profile") == 0 ? 0 : -1;
    json_t *definition = json_object_get(whole, "profile");
    buf_addf(&python, "%s/%s/" MADE_PYTHON, dir, name);
    json_object_set_new(definition, "python", json_string(python.data));
    json_object_set(to, name, definition);
    return 0;
}

int made_read(const char *dir, json_t **ret, struct err *e) {
    AUTO_FD place = -1;
    struct dirent **all;
    *ret = json_object();
    if (open_place(dir, &place, e) < 0)
        return strcmp(e->kind, "no_such_file") == 0 ? 0 : -1;
    int rc = 0, n = scandirat(place, ".", &all, NULL, alphasort);
    if (n < 0)
        return err_sys(e, "%s", dir);
    for (int i = 0; i < n; i++) {
        if (rc == 0 && config_name_is_good(all[i]->d_name))
            rc = add_one(place, dir, all[i]->d_name, *ret, e);
        free(all[i]);
    }
    free(all);
    return rc;
}
