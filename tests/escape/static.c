/* Uploaded by test_escape.py as a static binary: the same attempts as the Python programs make. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void told(const char *what, long result) {
    if (result >= 0)
        printf("%s: GOT THROUGH\n", what);
    else
        printf("%s: %s\n", what,
               errno == EPERM          ? "EPERM"
               : errno == ENOSYS       ? "ENOSYS"
               : errno == EROFS        ? "EROFS"
               : errno == EAFNOSUPPORT ? "EAFNOSUPPORT"
                                       : "another errno");
}

int main(void) {
    told("unshare", unshare(CLONE_NEWUSER));
    told("mount", mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
    told("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    told("io_uring", syscall(SYS_io_uring_setup, 8, NULL));
    told("kill init", kill(1, SIGKILL));
    printf("uid: %d\n", (int)getuid());
    told("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    told("write /usr", open("/usr/new", O_CREAT | O_WRONLY, 0600));
    long result = -ENOSYS;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory"); /* getpid of i386 */
#endif
    printf("i386: %s\n", result < 0 ? "refused" : "GOT THROUGH");
    return 0;
}
