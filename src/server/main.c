/* cloche-server: the engine and those who talk to it. Started by the warden without privileges.
 * Descriptors: 3 the packed configuration, 4 the listening socket, 5 the channel to the warden;
 * with HTTP also the directories for state, files and keys, and its listening sockets. SIGTERM:
 * finish what runs, take nothing new, leave. SIGHUP: read the keys again. */

#include "api/api.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/core/engine.h"
#include "engine/live/lives.h"
#include "engine/store/store.h"
#include "http/http.h"
#include "loop/crew.h"
#include "server/clients.h"

#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FIRST_HTTP_FD 6
#define CREW          2 /* threads: one may wait for a disk */

struct server {
    struct engine engine;
    struct loop *loop;
    struct clients *clients;
    struct store *store;
    struct api *api;
    int signals;
    struct watch signal_watch;
    bool failed; /* there is nothing to listen on */
};

static void on_drained(void *arg) {
    struct server *s = arg;
    loop_stop(s->loop);
}

static void reload(struct server *s) {
    struct err e;
    if (s->api && api_reload(s->api, &e) < 0)
        log_error("keys not read, those known stay error=%s", log_text(e.text));
}

static void server_on_signal(struct watch *w, uint32_t events) {
    struct server *s = w->arg;
    struct signalfd_siginfo info;
    (void)events;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            reload(s);
        else if (s->api)
            api_drain(s->api, s->engine.config.http.drain_s * 1000, on_drained, s);
        else
            loop_stop(s->loop);
    }
}

/* Whoever asks for a live sandbox finds those that an earlier server kept. */
static void listen_now(void *arg) {
    struct server *s = arg;
    struct err e;
    for (unsigned i = 0; i < s->engine.config.http.listeners && !s->failed; i++) {
        int fd = FIRST_HTTP_FD + HTTP_FD_DIRS_ + (int)i;
        s->failed = api_listen(s->api, &fd, &e) < 0;
    }
    if (!s->failed)
        return;
    log_error("server cannot start error=%s", log_text(e.text));
    loop_stop(s->loop);
}

static int start_http(struct server *s, struct err *e) {
    const struct config_http *h = &s->engine.config.http;
    if (h->listeners == 0)
        return 0;
    const struct store_options files = {.ttl_s = h->file_ttl_s,
                                        .file_max = (uint64_t)h->file_mb << 20,
                                        .total_max = (uint64_t)h->files_mb << 20,
                                        .crew = s->engine.crew};
    const struct api_options o = {.loop = s->loop,
                                  .engine = &s->engine,
                                  .keys_dir = FIRST_HTTP_FD + HTTP_FD_KEYS,
                                  .state_dir = FIRST_HTTP_FD + HTTP_FD_STATE,
                                  .trees_dir = FIRST_HTTP_FD + HTTP_FD_TREES,
                                  .audit_dir = FIRST_HTTP_FD + HTTP_FD_AUDIT};
    for (unsigned i = 0; i < config_http_fds(&s->engine.config); i++) {
        if (fd_set_cloexec(FIRST_HTTP_FD + (int)i, 1, e) < 0)
            return -1;
    }
    lives_init(&s->engine, FIRST_HTTP_FD + HTTP_FD_STATE);
    struct api_options with_store = o;
    if (store_open(FIRST_HTTP_FD + HTTP_FD_FILES, &files, s->loop, &s->store, e) < 0)
        return err_wrap(e, "stored files");
    with_store.store = s->store;
    if (api_new(&with_store, &s->api, e) < 0)
        return -1;
    s->engine.on_settled = listen_now;
    s->engine.settled_arg = s;
    return 0;
}

static int start(struct server *s, struct err *e) {
    const int signals[] = {SIGTERM, SIGHUP};
    int warden = 5;
    s->signal_watch = (struct watch){.fd = -1, .fn = server_on_signal, .arg = s};
    if (loop_new(&s->loop, e) < 0 || loop_signals(signals, 2, &s->signals, e) < 0 ||
        loop_watch(s->loop, &s->signal_watch, s->signals, EPOLLIN, e) < 0 ||
        engine_init(&s->engine, s->loop, 3, &warden, e) < 0 ||
        crew_new(s->loop, CREW, &s->engine.crew, e) < 0)
        return -1;
    log_init("server", (enum log_level)s->engine.config.log_level);
    log_set_format(s->engine.config.log_format);
    return clients_new(&s->engine, 4, &s->clients, e) < 0 ? -1 : start_http(s, e);
}

int main(void) {
    static struct server s;
    struct err e = {0};
    log_init("server", LOG_INFO);
    prctl(PR_SET_NAME, "cloche-server"); /* we were started by descriptor, which gives no name */
    signal(SIGPIPE, SIG_IGN);
    /* Large buffers go back to the system when they are freed: left alone, the allocator would take
     * their size for the usual one and keep them. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    /* SECURITY: small pieces that are freed are put together at once, not all of them when the next
     * larger one is wanted: of half a million, which a client can have us free, that took 25 ms. */
    mallopt(M_MXFAST, 0);
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
    if (start(&s, &e) < 0) {
        log_error("server cannot start error=%s", log_text(e.text));
        return 3; /* trying again is no use */
    }
    loop_measure(s.loop); /* /metrics tells */
    if (loop_run(s.loop, &e) < 0)
        log_error("server failed error=%s", log_text(e.text));
    return s.failed ? 3 : 0;
}
