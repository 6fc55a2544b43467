/* See paths.h. */

#include "config/paths.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/safedir.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *join(const char *dir, const char *rest) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s/%s", dir, rest);
    return buf_take(&b);
}

/* An XDG directory counts only when it is absolute (as its specification says). */
static const char *env_dir(const char *name) {
    const char *dir = getenv(name);
    return dir && dir[0] == '/' ? dir : NULL;
}

char *paths_socket(void) {
    if (geteuid() == 0)
        return xstrdup("/run/cloche/engine.sock");
    const char *runtime = env_dir("XDG_RUNTIME_DIR");
    if (runtime)
        return join(runtime, "cloche/engine.sock");
    struct buf b = BUF_INIT;
    buf_addf(&b, "/run/user/%u", (unsigned)geteuid());
    AUTO_FREE char *usual = buf_take(&b), *state = paths_state_dir();
    if (state && access(usual, F_OK) < 0) /* after su, in a container: nobody logged in */
        return join(state, "engine.sock");
    return join(usual, "cloche/engine.sock");
}

static int has_warden(const char *dir) {
    AUTO_FREE char *path = join(dir, "cloche-warden");
    return access(path, X_OK) == 0;
}

int paths_libexec(char **ret, struct err *e) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return err_sys(e, "find our own program");
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return err_set(e, ENOENT, "find our own program: %s is no path", self);
    *slash = '\0';
    AUTO_FREE char *installed = join(self, "../libexec/cloche");
    if (!has_warden(installed)) {
        *ret = xstrdup(self);
        return 0;
    }
    char *real = realpath(installed, NULL);
    if (!real)
        return err_sys(e, "%s", installed);
    *ret = real;
    return 0;
}

/* The first directory of configuration that has a file of this name. */
static char *find_config(const char *name) {
    const char *dirs[] = {env_dir("XDG_CONFIG_HOME"), NULL, "/etc"};
    AUTO_FREE char *home_config = NULL;
    const char *home = env_dir("HOME");
    if (!dirs[0] && home)
        dirs[1] = home_config = join(home, ".config");
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        AUTO_FREE char *dir = dirs[i] ? join(dirs[i], "cloche") : NULL;
        char *path = dir ? join(dir, name) : NULL;
        if (path && access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

char *paths_config_file(void) {
    return find_config("config.json");
}

char *paths_env_file(const char *config_file) {
    if (!config_file)
        return find_config(".env");
    const char *slash = strrchr(config_file, '/');
    struct buf b = BUF_INIT;
    buf_add(&b, config_file, slash ? (size_t)(slash + 1 - config_file) : 0);
    buf_adds(&b, ".env");
    if (access(b.data, F_OK) == 0)
        return buf_take(&b);
    buf_done(&b);
    return NULL;
}

char *paths_state_dir(void) {
    if (geteuid() == 0)
        return xstrdup("/var/lib/cloche");
    const char *state = env_dir("XDG_STATE_HOME"), *home = env_dir("HOME");
    if (state)
        return join(state, "cloche");
    return home ? join(home, ".local/state/cloche") : NULL;
}

char *paths_profiles_dir(void) {
    if (geteuid() == 0)
        return xstrdup("/var/lib/cloche-profiles"); /* the server can write to the other */
    AUTO_FREE char *state = paths_state_dir();
    return state ? join(state, "profiles") : NULL;
}

int paths_make_state_dir(const char *dir, int *ret, struct err *e) {
    return safedir_make(dir, geteuid() == 0 ? 0755 : 0700, ret, e);
}

int paths_absolute(const char *path, char **ret, struct err *e) {
    if (path[0] == '/') {
        *ret = xstrdup(path);
        return 0;
    }
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return err_sys(e, "find the working directory");
    *ret = join(cwd, path);
    return 0;
}
