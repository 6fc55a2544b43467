/* The writing half of idmap.h: once per nursery, from the parent of a process that sits in a new
 * user namespace. Apart from the finding half so that the nursery, which is linked statically, does
 * not need the user database. */

#include "sandbox/idmap_write.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *idmap_program(const char *name, char *out, size_t cap) {
    static const char *const dirs[] = {"/usr/bin", "/bin"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(out, cap, "%s/%s", dirs[i], name);
        if (access(out, X_OK) == 0)
            return out;
    }
    return NULL;
}

/* Runs the program and waits; what it says on stderr becomes the reason. */
static int run_program(char *const argv[], struct err *e) {
    AUTO_FD rd = -1;
    AUTO_FD wr = -1;
    int pipefd[2];
    if (pipe2(pipefd, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    rd = pipefd[0];
    wr = pipefd[1];

    static char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, wr, 2);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &none);
    pid_t pid;
    int code = posix_spawn(&pid, argv[0], &files, &attr, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    if (code)
        return err_set(e, code, "start %s: %s", argv[0], strerror(code));
    fd_close(&wr);

    char said[256] = "";
    struct err ignored;
    if (fd_read_all(rd, said, sizeof said, NULL, &ignored) < 0)
        said[sizeof said - 1] = '\0';
    fd_close(&rd);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "wait for %s", argv[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    said[strcspn(said, "\n")] = '\0';
    return err_set(e, EPERM, "%s failed: %s", argv[0], *said ? said : "it gave no reason");
}

static int write_by_helper(const char *program, pid_t pid, uint32_t first, uint32_t count,
                           struct err *e) {
    char path[64], id[3][16];
    if (!idmap_program(program, path, sizeof path))
        return err_set(e, ENOENT, "%s is not there; apt install uidmap", program);
    snprintf(id[0], sizeof id[0], "%d", (int)pid);
    snprintf(id[1], sizeof id[1], "%u", first);
    snprintf(id[2], sizeof id[2], "%u", count);
    char zero[] = "0";
    char *argv[] = {path, id[0], zero, id[1], id[2], NULL};
    return run_program(argv, e);
}

static int write_proc(pid_t pid, const char *file, const char *text, struct err *e) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return file_write_at(AT_FDCWD, path, text, e);
}

static int write_directly(const char *file, pid_t pid, uint32_t first, uint32_t count,
                          struct err *e) {
    char text[48];
    snprintf(text, sizeof text, "0 %u %u\n", first, count);
    return write_proc(pid, file, text, e);
}

int idmap_write(const struct idmap *m, pid_t pid, struct err *e) {
    if (m->helper) {
        if (write_by_helper("newuidmap", pid, m->uid, m->count, e) < 0)
            return -1;
        return write_by_helper("newgidmap", pid, m->gid, m->count, e);
    }
    /* Without privilege the kernel takes a group map only once setgroups is given up. */
    if (geteuid() != 0 && write_proc(pid, "setgroups", "deny", e) < 0)
        return -1;
    if (write_directly("uid_map", pid, m->uid, m->count, e) < 0)
        return -1;
    return write_directly("gid_map", pid, m->gid, m->count, e);
}
