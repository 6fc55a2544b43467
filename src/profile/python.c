/* See python.h. Nothing is run to find it out: we may be root. */

#include "profile/python.h"

#include "base/buf.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL "/usr/bin/python3"

/* A script chooses one when it is started (pyenv's do), and sandboxes have not got it. */
static bool is_program(const char *path) {
    char head[2] = "";
    struct stat st;
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111 &&
           read(fd, head, 2) == 2 && memcmp(head, "#!", 2) != 0;
}

static char *find_in_path(const char *name) {
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        size_t n = strcspn(at, ":");
        AUTO_BUF file = BUF_INIT;
        buf_addf(&file, "%.*s/%s", (int)n, at, name);
        if (at[0] == '/' && is_program(file.data))
            return buf_take(&file);
        at += n + (at[n] == ':');
    }
    return NULL;
}

static bool is_version(const char *said) {
    return *said && strspn(said, "0123456789.") == strlen(said);
}

int python_find(const char *said, char **ret, struct err *e) {
    AUTO_BUF name = BUF_INIT;
    AUTO_FREE char *found = NULL;
    buf_addf(&name, "python%s", said ? said : "");
    if (!said)
        found = xstrdup(USUAL);
    else if (strchr(said, '/'))
        found = xstrdup(said);
    else if (is_version(said))
        found = find_in_path(name.data);
    else
        return err_user(e, "bad_value",
                        "--python is \"%.60s\"; it takes a path, or a version: 3.12", said);
    if (!found)
        return err_user(e, "no_such_file",
                        "there is no %s on PATH (scripts that choose one do not "
                        "count: name the interpreter itself)",
                        name.data);
    *ret = realpath(found, NULL);
    if (!*ret)
        return err_user(e, "no_such_file", "%s: %s", found, strerror(errno));
    if (is_program(*ret))
        return 0;
    free(*ret);
    *ret = NULL;
    return err_user(e, "bad_value",
                    "%s is no program; --python takes an interpreter itself, no "
                    "script",
                    found);
}
