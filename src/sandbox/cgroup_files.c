/* See cgroup_files.h. */

#include "sandbox/cgroup_files.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SLURP_MAX (16u << 20)

int cgroup_slurp(int dir, const char *name, struct buf *to, struct err *e) {
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", name);
    while (to->len < SLURP_MAX) {
        char *room = buf_reserve(to, 4096);
        ssize_t n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read %s", name);
        buf_commit(to, (size_t)n);
        if (n == 0)
            return 0;
    }
    return err_set(e, EFBIG, "read %s: more than %u bytes", name, SLURP_MAX);
}

int cgroup_each_proc(int dir, void (*fn)(pid_t pid, void *ctx), void *ctx) {
    AUTO_BUF list = BUF_INIT;
    struct err e;
    if (cgroup_slurp(dir, "cgroup.procs", &list, &e) < 0)
        return -1;
    int count = 0;
    for (const char *at = list.data; *at;) {
        pid_t pid = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            pid = pid * 10 + (*at - '0');
        at += strcspn(at, "\n");
        at += *at == '\n';
        count++;
        /* SECURITY: a process that our pid namespace does not show is listed as 0, which is our own
         * process group to kill(). */
        if (pid > 0)
            fn(pid, ctx);
    }
    return count;
}

int cgroup_knob_write(const struct cgroup_slot *s, enum cgroup_knob k, const char *text,
                      struct err *e) {
    if (pwrite(s->knobs[k], text, strlen(text), 0) < 0)
        return err_sys(e, "set cgroup knob %d of slot %u to %s", (int)k, s->slot, text);
    return 0;
}

int cgroup_knob_write_number(const struct cgroup_slot *s, enum cgroup_knob k, uint64_t number,
                             struct err *e) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return cgroup_knob_write(s, k, text, e);
}
