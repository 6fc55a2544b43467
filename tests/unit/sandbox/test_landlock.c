/* Landlock in a small root of its own: children that live under the ruleset, among them Python. A
 * user and a mount namespace are needed, and Landlock; without them the tests are skipped. */

#include "sandbox/landlock.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NO_NAMESPACE = 77 };

static int bind_into(const char *from, const char *to) {
    struct stat st;
    if (lstat(from, &st) < 0)
        return 0; /* not every system has a /lib64 */
    char target[64];
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(from, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        return symlink(target, to);
    }
    return mkdir(to, 0755) < 0 ? -1 : mount(from, to, NULL, MS_BIND | MS_REC, NULL);
}

/* Root of a new user namespace, and a mount namespace. */
static int new_namespaces(void) {
    struct err e;
    char uids[32], gids[32];
    snprintf(uids, sizeof uids, "0 %u 1", geteuid());
    snprintf(gids, sizeof gids, "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        file_write_at(-1, "/proc/self/setgroups", "deny", &e) < 0 ||
        file_write_at(-1, "/proc/self/uid_map", uids, &e) < 0 ||
        file_write_at(-1, "/proc/self/gid_map", gids, &e) < 0)
        return -1;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int mount_tmpfs(const char *where) {
    return mkdir(where, 0755) < 0 && errno != EEXIST ? -1 : mount("tmpfs", where, "tmpfs", 0, NULL);
}

/* A root with the host's programs, and what a sandbox has: /workspace, /tmp, /dev/shm; /elsewhere
 * is writable as far as mounts go. It vanishes with the mount namespace. */
static int make_root(void) {
    if (new_namespaces() < 0 || mount_tmpfs("/tmp") < 0 || chdir("/tmp") < 0)
        return NO_NAMESPACE;
    static const char *const shared[] = {"usr", "lib", "lib64", "bin", "etc", "dev", "proc"};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        char from[16];
        snprintf(from, sizeof from, "/%s", shared[i]);
        if (bind_into(from, shared[i]) < 0)
            return 1;
    }
    if (mount_tmpfs("workspace") < 0 || mount_tmpfs("tmp") < 0 || mount_tmpfs("elsewhere") < 0 ||
        mount_tmpfs("dev/shm") < 0)
        return 2;
    return chroot(".") < 0 || chdir("/workspace") < 0 ? 3 : 0;
}

static int enter(void) {
    struct err e;
    int ruleset;
    if (landlock_ruleset(&ruleset, &e) < 0 || ruleset < 0)
        return 4;
    if (!(fcntl(ruleset, F_GETFD) & FD_CLOEXEC))
        return 5;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || landlock_enter(ruleset, &e) < 0)
        return 6;
    return close(ruleset);
}

/* Runs Python in there; 0 when it printed nothing and exited with 0. */
static void expect_python(const char *code) {
    if (landlock_abi() == 0)
        skip();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int rc = make_root();
        if (rc == 0)
            rc = enter();
        if (rc == 0)
            execl("/usr/bin/python3", "python3", "-c", code, NULL);
        _exit(rc ? rc : 7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_files_in_the_writable_trees(void **state) {
    (void)state;
    expect_python(
        "import os, socket, stat, tempfile\n"
        "for top in '/workspace', '/tmp', '/dev/shm':\n"
        "    os.makedirs(top + '/a/b'); os.mkdir(top + '/c')\n"
        "    f = top + '/a/b/f'\n"
        "    open(f, 'w').write('x'); open(f, 'a').write('y'); os.truncate(f, 1)\n"
        "    os.rename(f, top + '/c/f'); os.link(top + '/c/f', top + '/a/l')\n"
        "    os.link(top + '/a/l', top + '/a/m'); os.rename(top + '/c', top + '/a/c')\n"
        "    os.symlink('a/l', top + '/s'); os.mkfifo(top + '/p'); os.chmod(f[:-2], 0o700)\n"
        "    assert open(top + '/s').read() == 'x'\n"
        "    s = socket.socket(socket.AF_UNIX); s.bind(top + '/sock'); s.listen()\n"
        "    socket.socket(socket.AF_UNIX).connect(top + '/sock')\n"
        "    os.unlink(top + '/sock'); os.rmdir(top + '/a/b')\n"
        "with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
        "with tempfile.TemporaryFile() as f: f.write(b'x')\n"
        "with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w')\n");
}

static void test_devices_and_terminals(void **state) {
    (void)state;
    expect_python("import os, pty, sys, termios\n"
                  "open('/dev/null', 'w').write('x'); open('/dev/zero', 'rb').read(1)\n"
                  "open('/dev/urandom', 'rb').read(1)\n"
                  "m, s = pty.openpty(); termios.tcgetattr(s); os.get_terminal_size(s)\n"
                  "r, w = os.pipe(); os.dup2(w, 1); open('/dev/stdout', 'w').write('x')\n"
                  "assert os.read(r, 9) == b'x'\n"
                  "fd = os.memfd_create('m'); open(f'/proc/self/fd/{fd}', 'w').write('x')\n");
}

static void test_processes(void **state) {
    (void)state;
    expect_python("import multiprocessing as mp, multiprocessing.shared_memory, os, signal\n"
                  "import subprocess, threading\n"
                  "assert subprocess.check_output('cat /proc/self/comm', shell=True) == b'cat\\n'\n"
                  "p = subprocess.Popen(['sleep', '1000']); p.terminate(); p.wait()\n"
                  "with mp.get_context('fork').Pool(2) as p: assert p.map(abs, [-1]) == [1]\n"
                  "m = mp.shared_memory.SharedMemory(create=True, size=9); m.close(); m.unlink()\n"
                  "mp.get_context('fork').Queue().put(1); mp.Semaphore(1)\n"
                  "signal.signal(signal.SIGUSR1, lambda *_: None); os.kill(os.getpid(), 10)\n"
                  "t = threading.Thread(target=lambda: signal.pthread_kill(\n"
                  "    threading.main_thread().ident, 10)); t.start(); t.join()\n");
}

static void test_no_writing_elsewhere(void **state) {
    (void)state;
    expect_python(
        "import os\n"
        "def refused(call, *args):\n"
        "    try: call(*args)\n"
        "    except PermissionError: return\n"
        "    except OSError as e: assert e.errno == 18, e; return  # EXDEV\n"
        "    raise SystemExit(f'{call} {args} was not refused')\n"
        "assert os.listdir('/elsewhere') == []\n"
        "open('/workspace/f', 'w')\n"
        "for top in '/elsewhere', '/', '/dev':\n"
        "    refused(open, top + '/f', 'w'); refused(os.mkdir, top + '/d')\n"
        "    refused(os.symlink, 'x', top + '/l'); refused(os.mkfifo, top + '/p')\n"
        "    refused(os.rename, '/workspace/f', top + '/f')\n"
        "refused(os.rmdir, '/elsewhere'); refused(open, '/proc/self/oom_score_adj', 'w')\n"
        "refused(os.unlink, '/etc/passwd')\n");
}

static void test_no_truncating_elsewhere(void **state) {
    (void)state;
    if (landlock_abi() < 3)
        skip();
    expect_python("import os\n"
                  "try: os.truncate('/etc/passwd', os.path.getsize('/etc/passwd'))\n"
                  "except PermissionError: pass\n"
                  "else: raise SystemExit('truncated')\n");
}

static void test_no_signals_outside(void **state) {
    (void)state;
    if (landlock_abi() < 6)
        skip();
    expect_python("import os\n"
                  "try: os.kill(os.getppid(), 0)\n"
                  "except PermissionError: pass\n"
                  "else: raise SystemExit('signalled')\n");
}

static int ruleset_without_directories(void) {
    struct err e;
    int ruleset = -2;
    if (new_namespaces() < 0 || mount_tmpfs("/tmp") < 0 || chroot("/tmp") < 0)
        return NO_NAMESPACE;
    return landlock_ruleset(&ruleset, &e) < 0 && e.code == ENOENT && ruleset == -2 &&
                   strstr(e.text, "/workspace")
               ? 0
               : 1;
}

static void test_a_missing_directory_is_named(void **state) {
    (void)state;
    if (landlock_abi() == 0)
        skip();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(ruleset_without_directories());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == NO_NAMESPACE << 8)
        skip();
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_in_the_writable_trees),
        cmocka_unit_test(test_devices_and_terminals),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_no_writing_elsewhere),
        cmocka_unit_test(test_no_truncating_elsewhere),
        cmocka_unit_test(test_no_signals_outside),
        cmocka_unit_test(test_a_missing_directory_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
