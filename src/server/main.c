/* cloche-server: the engine and those who talk to it. Started by the warden without privileges.
 * Descriptors: 3 the packed configuration, 4 the listening socket, 5 the channel to the warden. */

#include "base/fd.h"
#include "base/log.h"
#include "engine/engine.h"
#include "server/clients.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
    static struct engine engine;
    struct loop *loop;
    struct clients *clients;
    struct err e = {0};
    log_init("server", LOG_INFO);
    prctl(PR_SET_NAME, "cloche-server"); /* we were started by descriptor, which gives no name */
    signal(SIGPIPE, SIG_IGN);
    for (int fd = 3; fd <= 5; fd++) {
        if (fd_set_cloexec(fd, 1, &e) < 0) {
            log_error("cloche-server is started by cloche-warden; use `cloche serve`");
            return 125;
        }
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int warden = 5;
    if (loop_new(&loop, &e) < 0 || engine_init(&engine, loop, 3, &warden, &e) < 0 ||
        clients_new(&engine, 4, &clients, &e) < 0) {
        log_error("server cannot start error=%s", e.text);
        return 1;
    }
    log_init("server", (enum log_level)engine.config.log_level);
    if (loop_run(loop, &e) < 0)
        log_error("server failed error=%s", e.text);
    return 0;
}
