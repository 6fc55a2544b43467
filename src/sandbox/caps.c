/* See caps.h.
 *
 * Theory of operation. Emptying the bounding set and setting securebits both need CAP_SETPCAP in
 * the effective set; after setuid with kept capabilities it is permitted but not effective, so it
 * is raised first and everything goes last. At the end the sets are read back: what is
 * promised is what the kernel says, not what was asked of it. The ambient set is never more than
 * the permitted one. */

#include "sandbox/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAP_NUMBERS = 64 };

static const unsigned long securebits =
    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

static int caps_get(struct __user_cap_data_struct sets[2], struct err *e) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, sets) < 0 ? err_sys(e, "capget") : 0;
}

static int caps_set(const struct __user_cap_data_struct sets[2], struct err *e) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capset, &header, sets) < 0 ? err_sys(e, "capset") : 0;
}

/* True when CAP_SETPCAP is effective now. */
static bool raise_setpcap(struct err *e) {
    struct __user_cap_data_struct sets[2];
    if (caps_get(sets, e) < 0)
        return false;
    const __u32 bit = CAP_TO_MASK(CAP_SETPCAP);
    __u32 *effective = &sets[CAP_TO_INDEX(CAP_SETPCAP)].effective;
    if (*effective & bit)
        return true;
    *effective |= bit;
    return caps_set(sets, e) == 0;
}

/* The kernel answers EINVAL for the first number that it does not know. */
static int drop_bounding(struct err *e) {
    for (unsigned long cap = 0; cap < CAP_NUMBERS; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        int why = errno, in = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (in < 0)
            break;
        if (in) {
            errno = why;
            return err_sys(e, "drop capability %lu from the bounding set", cap);
        }
    }
    return 0;
}

static int check_none_held(struct err *e) {
    struct __user_cap_data_struct sets[2];
    if (caps_get(sets, e) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (sets[i].effective | sets[i].permitted | sets[i].inheritable)
            return err_set(e, EPERM, "capabilities are left after dropping them");
    return 0;
}

static int check_none(struct err *e) {
    if (check_none_held(e) < 0)
        return -1;
    for (unsigned long cap = 0; cap < CAP_NUMBERS; cap++) {
        int in = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (in < 0)
            break;
        if (in > 0)
            return err_set(e, EPERM, "capability %lu is left after dropping it", cap);
    }
    return 0;
}

int caps_keep(struct err *e) {
    return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ? err_sys(e, "prctl(PR_SET_KEEPCAPS)") : 0;
}

int caps_drop_held(struct err *e) {
    static const struct __user_cap_data_struct none[2];
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_sys(e, "clear the ambient capabilities");
    return caps_set(none, e) < 0 ? -1 : check_none_held(e);
}

int caps_drop_all(struct err *e) {
    if (raise_setpcap(e) && prctl(PR_SET_SECUREBITS, securebits, 0, 0, 0) < 0)
        return err_sys(e, "prctl(PR_SET_SECUREBITS)");
    if (drop_bounding(e) < 0)
        return -1;
    return caps_drop_held(e) < 0 ? -1 : check_none(e);
}
