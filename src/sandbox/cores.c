/* See cores.h. */

#include "sandbox/cores.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static rlim_t hard_limit(void) {
    struct rlimit l;
    return getrlimit(RLIMIT_CORE, &l) == 0 ? l.rlim_max : 0;
}

void cores_allow_limit(void) {
    const struct rlimit one = {0, 1};
    if (hard_limit() == 0)
        (void)setrlimit(RLIMIT_CORE, &one);
}

bool cores_can_be_kept(void) {
    return hard_limit() > 0;
}

bool cores_are_piped(const char *pattern) {
    char first = '|';
    int fd = open(pattern, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    if (read(fd, &first, 1) < 0)
        first = '|';
    close(fd);
    return first == '|' || first == '@'; /* a program, or since 6.16 a socket */
}

int cores_forbid(struct err *e) {
    rlim_t most = hard_limit() > 0 ? 1 : 0;
    const struct rlimit l = {most, most};
    return setrlimit(RLIMIT_CORE, &l) < 0 ? err_sys(e, "setrlimit core") : 0;
}
