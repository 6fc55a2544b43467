/* See apt.h. apt-get is started directly, without a shell; names that it would take for options, or
 * for more than the name of a package, are refused before. */

#include "profile/apt.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "profile/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APT        "/usr/bin/apt-get"
#define NAME_MAX_  64
#define LOCK_WAIT  "DPkg::Lock::Timeout=300" /* seconds: somebody else may be installing */
#define SYSTEM_BIN "/usr/bin/"

/* As Debian's policy has it: lower case, and begins with a letter or digit. */
static bool is_package(const char *name) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(name);
    return n >= 2 && n <= NAME_MAX_ && strchr(first, name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == n && name[n - 1] != '-' &&
           name[n - 1] != '+'; /* those would mean: remove it, install it */
}

int apt_check(const struct profile_options *o, struct err *e) {
    char quoted[96];
    if (!o->napt)
        return 0;
    for (unsigned k = 0; k < o->napt; k++) {
        if (!is_package(o->apt[k]))
            return err_user(e, "bad_value", "--apt: %s is no name of a Debian package",
                            log_quote(o->apt[k], quoted, sizeof quoted));
    }
    if (geteuid() != 0)
        return err_user(e, "bad_value",
                        "--apt: only root can install Debian packages on this machine; a profile "
                        "sees those that are there with --system-packages");
    if (access(APT, X_OK) < 0)
        return err_user(e, "bad_value", "--apt: there is no " APT " on this machine");
    return 0;
}

static int run_apt(const char *const *argv, int *ret_status, struct err *e) {
    static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                      "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    pid_t pid;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0 || posix_spawnattr_init(&how) != 0)
        return err_set(e, ENOMEM, "start " APT);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    int r = posix_spawn(&pid, APT, &files, &how, (char *const *)(uintptr_t)argv,
                        (char *const *)(uintptr_t)env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    if (r != 0)
        return err_user(e, "build_failed", "start " APT ": %s", strerror(r));
    while (waitpid(pid, ret_status, 0) < 0) {
        if (errno != EINTR)
            return err_sys(e, "wait for " APT);
    }
    return 0;
}

int apt_install(const struct profile_options *o, struct err *e) {
    static const char *const words[] = {
        APT, "install", "--yes", "--no-install-recommends", "--no-remove", "-o", LOCK_WAIT, "--"};
    enum { WORDS = sizeof words / sizeof *words };
    int status = 0;
    if (!o->napt)
        return 0;
    AUTO_FREE const char **argv = xcalloc(WORDS + o->napt + 1, sizeof *argv);
    memcpy(argv, words, sizeof words);
    memcpy(argv + WORDS, o->apt, o->napt * sizeof *argv);
    if (run_apt(argv, &status, e) < 0)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_user(e, "build_failed",
                    "apt-get could not install the Debian packages (see above); nothing else was "
                    "done");
}
