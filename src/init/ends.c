/* See ends.h. Init makes them, since whoever makes a pipe pays for its buffer. */

#include "init/ends.h"

#include "base/fd.h"
#include "sandbox/landlock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void ends_done(struct ends *s) {
    fd_close_all(s->ctl, 2);
    fd_close_all(s->ours, 3);
    fd_close_all(s->theirs, 3);
    fd_close(&s->ruleset);
}

/* They belong to the sandbox's user, or /dev/stdout and its like could not be opened. */
static int make_pipes(uint32_t uid, struct ends *s, struct err *e) {
    for (int i = 0; i < 3; i++) {
        int p[2];
        if (pipe2(p, O_CLOEXEC) < 0)
            return err_sys(e, "pipe");
        s->ours[i] = i == 0 ? p[1] : p[0];
        s->theirs[i] = i == 0 ? p[0] : p[1];
        if (fchown(p[0], uid, uid) < 0)
            return err_sys(e, "pipe");
    }
    return 0;
}

int ends_make(uint32_t uid, struct ends *s, struct err *e) {
    memset(s, 0xff, sizeof *s);
    if (wire_pair(s->ctl, e) < 0 || make_pipes(uid, s, e) < 0 ||
        landlock_ruleset(&s->ruleset, e) < 0)
        return -1;
    if (s->ruleset < 0)
        s->ruleset = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return s->ruleset < 0 ? err_sys(e, "open /dev/null") : 0;
}

struct wire_fds ends_theirs(const struct ends *s) {
    struct wire_fds f = {KERNEL_END_FDS,
                         {s->ctl[1], s->theirs[0], s->theirs[1], s->theirs[2], s->ruleset}};
    _Static_assert(KERNEL_END_FDS == 5, "one of each");
    return f;
}
