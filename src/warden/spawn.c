/* See spawn.h. */

#include "warden/spawn.h"

#include "base/fd.h"
#include "base/service.h"
#include "sandbox/caps.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The bounding set can be emptied with CAP_SETPCAP only, which root may lack in a container; it
 * gives nothing to a process with no_new_privs. */
static int drop(const struct service *id) {
    struct err e;
    if (setgroups(0, NULL) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 || caps_keep(&e) < 0 ||
        setresuid(id->uid, id->uid, id->uid) < 0)
        return -1;
    return caps_drop_all(&e) < 0 ? caps_drop_held(&e) : 0;
}

/* The program is open already: it may lie below a directory that only root can enter. */
static _Noreturn void become(const struct spawn *s, int program, const struct service *id) {
    int moved[SPAWN_MAX_FDS], exe = fcntl(program, F_DUPFD_CLOEXEC, 3 + 2 * SPAWN_MAX_FDS);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (unsigned i = 0; i < s->nfds; i++)
        moved[i] = fcntl(s->fds[i], F_DUPFD, 3 + SPAWN_MAX_FDS);
    for (unsigned i = 0; i < s->nfds; i++) {
        if (moved[i] < 0 || dup2(moved[i], 3 + (int)i) < 0)
            _exit(126);
    }
    if (exe < 0 || close_range(3 + s->nfds, (unsigned)exe - 1, 0) < 0 ||
        close_range((unsigned)exe + 1, ~0u, 0) < 0)
        _exit(126);
    if (s->unprivileged && geteuid() == 0 && drop(id) < 0)
        _exit(126);
    if (s->unprivileged && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of ids, which clears it */
    static char *const envp[] = {(char *)"PATH=/usr/bin:/bin:/usr/sbin:/sbin",
                                 (char *)"LANG=C.UTF-8", NULL};
    execveat(exe, "", (char *const *)s->argv, envp, AT_EMPTY_PATH);
    _exit(127);
}

int spawn(const struct warden *w, const struct spawn *s, pid_t *ret, struct err *e) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", w->config.libexec, s->program);
    AUTO_FD program = open(path, O_RDONLY | O_CLOEXEC);
    if (s->nfds > SPAWN_MAX_FDS)
        return err_set(e, E2BIG, "%s is handed %u descriptors, %d at most", path, s->nfds,
                       SPAWN_MAX_FDS);
    if (program < 0 || access(path, X_OK) < 0)
        return err_sys(e, "%s", path);
    struct service id = service_find();
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, "fork %s", s->program);
    if (pid == 0)
        become(s, program, &id);
    *ret = pid;
    return 0;
}
