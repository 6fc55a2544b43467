/* See landlock.h.
 *
 * Theory of operation. init makes one ruleset per sandbox after its mounts, since rules are tied to
 * inodes; each kernel gets the descriptor and enters. Everything that this kernel's Landlock can
 * handle is handled, so whatever no rule grants is refused: writing outside the three writable
 * trees, making device nodes anywhere, ioctl on devices outside /dev. A later version of Landlock
 * handles more, so the rights are cut to the version found. Sockets and ports are not handled: the
 * network namespace does that. The domain also keeps its members from tracing or opening the memory
 * of anyone outside it.
 *
 * Pipes, memfds and descriptors opened earlier are not concerned: /dev/stdout works on them. Each
 * kernel is a domain of its own, and two kernels of one sandbox cannot signal each other. */

#include "sandbox/landlock.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's header ends with version 2. */
enum {
    FS_REFER = 1 << 13,     /* 2 */
    FS_TRUNCATE = 1 << 14,  /* 3 */
    FS_IOCTL_DEV = 1 << 15, /* 5 */
};
enum {
    SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, /* 6 */
    SCOPE_SIGNAL = 1 << 1,               /* 6 */
};
struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* 4 */
    uint64_t scoped;             /* 6 */
};

enum {
    READ = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    WRITE_FILES = LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE,
    CHANGE_TREE = LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                  LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                  LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER,
    MAKE_DEVICES = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
    ALL = READ | WRITE_FILES | CHANGE_TREE | MAKE_DEVICES | FS_IOCTL_DEV,
};

static const struct {
    const char *path;
    uint64_t access;
} grants[] = {
    {"/", READ},
    {"/workspace", READ | WRITE_FILES | CHANGE_TREE},
    {"/tmp", READ | WRITE_FILES | CHANGE_TREE},
    {"/dev", READ | WRITE_FILES | FS_IOCTL_DEV}, /* terminals below /dev/pts included */
    {"/dev/shm", READ | WRITE_FILES | CHANGE_TREE},
};

int landlock_abi(void) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    /* Version 1 refuses every rename and link between directories, which programs do all the time.
     */
    return abi < 2 ? 0 : (int)abi;
}

static uint64_t rights_of(int abi) {
    uint64_t rights = ALL;
    if (abi < 5)
        rights &= ~(uint64_t)FS_IOCTL_DEV;
    if (abi < 3)
        rights &= ~(uint64_t)FS_TRUNCATE;
    return rights;
}

static int grant(int ruleset, const char *path, uint64_t access, struct err *e) {
    AUTO_FD dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "landlock: open %s", path);
    const struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = dir};
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys(e, "landlock: rule for %s", path);
    return 0;
}

int landlock_ruleset(int *ret_fd, struct err *e) {
    int abi = landlock_abi();
    if (abi == 0) {
        *ret_fd = -1;
        return 0;
    }
    const struct ruleset_attr attr = {
        .handled_access_fs = rights_of(abi),
        .scoped = abi < 6 ? 0 : SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
    };
    /* Older kernels take the longer struct as long as what they do not know is zero. */
    AUTO_FD ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (ruleset < 0)
        return err_sys(e, "landlock_create_ruleset");
    for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++)
        if (grant(ruleset, grants[i].path, grants[i].access & rights_of(abi), e) < 0)
            return -1;
    *ret_fd = fd_take(&ruleset); /* CLOEXEC at birth */
    return 0;
}

int landlock_enter(int ruleset, struct err *e) {
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return err_sys(e, "landlock_restrict_self");
    return 0;
}
