/* cloche-gate: started by the warden, without privileges. Descriptors: 3 the channel to the warden,
 * whose end of file is our end, 4 our part of the configuration, 5 the host's list of resolvers. */

#include "base/fd.h"
#include "base/log.h"
#include "gate/filter.h"
#include "gate/gate.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILES_MOST (GATE_OUTSIDE_MOST + 3 * GATE_SANDBOXES_MOST + 1024)

/* Of memory: what it is bounded by itself, with room to spare, so that a fault of ours ends the
 * gate and not the machine. Instrumented builds map terabytes and have none. */
#define MEMORY_MOST (2ull << 30)

static void bound_ourselves(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        rlim_t most = r.rlim_max < FILES_MOST ? r.rlim_max : FILES_MOST;
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most});
    }
    if (!filter_is_off())
        setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY_MOST, MEMORY_MOST});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
}

int main(void) {
    static struct gate g;
    struct err e = {0};
    log_init("gate", LOG_INFO);
    prctl(PR_SET_NAME, "cloche-gate"); /* we were started by descriptor, which gives no name */
    signal(SIGPIPE, SIG_IGN);
    /* For whoever stops all of a service's processes: sandboxes may still finish what they do, and
     * the warden ends us when it ends. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (int fd = GATE_WARDEN; fd <= GATE_RESOLV; fd++) {
        if (fd_set_cloexec(fd, 1, &e) < 0) {
            log_error("cloche-gate is started by cloche-warden; use `cloche serve`");
            return 125;
        }
    }
    if (gate_open(&g, &e) < 0) {
        log_error("gate cannot start error=%s", log_text(e.text));
        return 3;
    }
    bound_ourselves();
    if (filter_enter(&e) < 0) {
        log_error("gate cannot start error=%s", log_text(e.text));
        return 3;
    }
    int r = loop_run(g.loop, &e);
    if (r < 0)
        log_error("gate failed error=%s", log_text(e.text));
    _exit(r < 0 ? 1 : 0); /* what it had goes with it, at once */
}
