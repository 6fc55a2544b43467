/* Entering a filter that seccomp_compile made. A file of its own, with no libseccomp in it: it runs
 * in a Python process between fork and hand-over, where a millisecond and an allocation are too
 * much. */

#include "sandbox/seccomp_load.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static long set_filter(unsigned long flags, const struct sock_fprog *prog) {
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
}

int seccomp_enter(const void *filter, size_t bytes, int *ret_listener, struct err *e) {
    size_t len = bytes / sizeof(struct sock_filter);
    if (len == 0 || len > BPF_MAXINSNS || bytes % sizeof(struct sock_filter))
        return err_set(e, EINVAL, "seccomp filter of %zu bytes", bytes);
    const struct sock_fprog prog = {
        .len = (unsigned short)len,
        .filter = (struct sock_filter *)(uintptr_t)filter, /* the kernel only reads it */
    };
    /* WAIT_KILLABLE_RECV (5.19): a signal does not make the caller ask a second time for what is
     * already being answered. Without SPEC_ALLOW the kernel keeps its mitigations on. */
    long fd =
        ret_listener
            ? set_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                         &prog)
            : set_filter(0, &prog);
    if (ret_listener && fd < 0 && errno == EINVAL)
        fd = set_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    if (fd < 0)
        return err_sys(e, "seccomp(SECCOMP_SET_MODE_FILTER)");
    if (ret_listener)
        *ret_listener = (int)fd;
    return 0;
}
