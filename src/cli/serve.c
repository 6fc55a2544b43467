/* `cloche serve`: resolves the configuration, makes the socket, starts the warden and keeps it
 * running.
 *
 * The socket belongs to this process and outlives a warden that dies: clients that connect
 * meanwhile wait in its queue for the next one. SIGTERM and SIGINT close the life line, on which
 * the warden takes everything down; if this process is killed outright, the same happens by itself.
 */

#include "cli/serve.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/report.h"
#include "config/config.h"
#include "config/options.h"
#include "config/resolve.h"
#include "loop/loop.h"
#include "supervisor/http_sockets.h"
#include "supervisor/launch.h"
#include "supervisor/listen.h"
#include "supervisor/reload.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUICK_DEATH_MS 1000
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000
#define DRAIN_SLACK_MS 2000

struct serve {
    int argc; /* the command line, to be read again */
    char **argv;
    struct config config;
    struct buf settings; /* packed, without profiles: as they were at the start */
    struct listener listener;
    struct http_sockets http;
    struct warden warden;
    struct buf lines; /* of the ready pipe, the last one perhaps not whole yet */
    struct buf problem;
    int signals; /* signalfd */
    int backoff_ms;
};

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};

static void say_line(struct serve *s, const char *line) {
    if (strncmp(line, "problem ", 8) == 0) {
        buf_clear(&s->problem);
        buf_adds(&s->problem, line + 8);
        return;
    }
    if (strncmp(line, "live ", 5) == 0)
        return; /* the log has it; this list tells when programs can run */
    if (strcmp(line, "listening") == 0)
        printf("cloche " CLOCHE_VERSION " listening on %s\n%s", s->config.socket,
               s->http.where.data);
    else
        printf("%s\n", line);
    fflush(stdout);
}

static void say_lines(struct serve *s) {
    char *at = s->lines.data, *end;
    while ((end = strchr(at, '\n'))) {
        *end = '\0';
        say_line(s, at);
        at = end + 1;
    }
    size_t rest = strlen(at);
    AUTO_BUF kept = BUF_INIT;
    buf_add(&kept, at, rest);
    buf_clear(&s->lines);
    buf_add(&s->lines, kept.data, kept.len);
}

enum event { EVENT_STOP, EVENT_DIED };

/* The settings without the profiles, to see a change that only a restart takes up. */
static void pack_settings(struct config *c, struct buf *to) {
    unsigned n = c->nprofiles;
    c->nprofiles = 0;
    config_encode(c, to);
    c->nprofiles = n;
}

static int read_settings(int argc, char **argv, struct config *ret, struct err *e) {
    bool ignored;
    const struct verb_flag flags[] = {{"help", &ignored}, {0}};
    AUTO_OPTIONS o = options_new();
    if (options_parse(o, argc, argv, flags, e) < 0 || options_load(o, e) < 0 ||
        options_resolve(o, ret, e) < 0)
        return -1;
    reload_stamp(ret);
    return 0;
}

static int reload_profiles(struct serve *s, struct err *e) {
    struct config next;
    if (read_settings(s->argc, s->argv, &next, e) < 0)
        return -1;
    AUTO_BUF now = BUF_INIT;
    pack_settings(&next, &now);
    if (now.len != s->settings.len || memcmp(now.data, s->settings.data, now.len) != 0)
        log_warn("settings changed that are read at start only");
    int rc = reload_merge(&s->config, &next, e);
    config_done(&next);
    return rc < 0 || s->warden.pid <= 0 ? rc : warden_tell(&s->warden, &s->config, e);
}

/* SIGHUP: profiles and keys anew. The keys are the server's to read. */
static bool is_reload(struct serve *s) {
    struct signalfd_siginfo info;
    struct err e;
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo != SIGHUP)
        return false;
    if (reload_profiles(s, &e) < 0)
        log_error("profiles not read, those known stay error=%s", log_text(e.text));
    if (s->warden.pid > 0)
        kill(s->warden.pid, SIGHUP);
    return true;
}

/* Programs that run may finish; a second signal ends them at once. */
static void drain(struct serve *s) {
    if (s->config.http.listeners && s->config.http.drain_s)
        warden_drain(&s->warden, s->signals, (int)s->config.http.drain_s * 1000 + DRAIN_SLACK_MS);
}

/* Passes the warden's words on until it ends or we are told to stop. */
static enum event watch(struct serve *s) {
    struct pollfd p[] = {{.fd = s->signals, .events = POLLIN},
                         {.fd = s->warden.ready, .events = POLLIN},
                         {.fd = s->warden.pidfd, .events = POLLIN}};
    for (;;) {
        if (poll(p, 3, -1) < 0)
            continue;
        if (p[1].revents) {
            if (warden_read(&s->warden, &s->lines) == 0)
                p[1].fd = -1;
            say_lines(s);
        }
        if (p[0].revents && !is_reload(s))
            return EVENT_STOP;
        if (p[2].revents)
            return EVENT_DIED;
    }
}

/* True when it should be started again, after a wait if it died in its infancy. */
static bool after_death(struct serve *s, int status, uint64_t lived_ms) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == WARDEN_CANNOT)
        return false;
    bool killed = WIFSIGNALED(status);
    log_error("warden died %s=%d lived_ms=%llu problem=%s", killed ? "signal" : "status",
              killed ? WTERMSIG(status) : WEXITSTATUS(status), (unsigned long long)lived_ms,
              log_text(s->problem.data));
    if (lived_ms >= QUICK_DEATH_MS) {
        s->backoff_ms = 0;
        return true;
    }
    s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (s->backoff_ms > BACKOFF_MAX_MS)
        s->backoff_ms = BACKOFF_MAX_MS;
    return true;
}

/* True when a signal to stop came instead. */
static bool back_off(struct serve *s) {
    struct pollfd p = {.fd = s->signals, .events = POLLIN};
    return poll(&p, 1, s->backoff_ms) > 0 && !is_reload(s);
}

static int supervise(struct serve *s, struct err *e) {
    for (;;) {
        uint64_t start = now_ms();
        buf_clear(&s->lines);
        buf_clear(&s->problem);
        if (warden_start(&s->config, s->listener.fd, s->http.fds, &s->warden, e) < 0)
            return -1;
        log_debug("warden started pid=%d", (int)s->warden.pid);
        if (watch(s) == EVENT_STOP) {
            log_info("stopping");
            drain(s);
            warden_stop(&s->warden, &s->config, &s->lines);
            say_lines(s);
            return 0;
        }
        int status = warden_reap(&s->warden, &s->config);
        warden_read(&s->warden, &s->lines);
        say_lines(s);
        fd_close(&s->warden.ready);
        if (!after_death(s, status, now_ms() - start))
            return err_user(e, "engine_failed", "the engine cannot start here: %s",
                            s->problem.len ? s->problem.data : "it did not say why");
        if (back_off(s))
            return 0;
        s->config.warden_restarts++;
        log_info("starting the warden again");
    }
}

static void print_help(void) {
    puts("cloche serve [SETTINGS]\n\n"
         "Keeps an engine with warm sandboxes running until SIGTERM or Ctrl-C. The settings can "
         "also\n"
         "be given as CLOCHE_NAME in the environment and in the configuration file; `cloche "
         "config`\n"
         "shows what is in force.\n");
    options_help();
}

static int serve_run(int argc, char **argv, struct err *e) {
    struct serve s = {.argc = argc,
                      .argv = argv,
                      .settings = BUF_INIT,
                      .listener.fd = -1,
                      .http.where = BUF_INIT,
                      .warden = WARDEN_INIT,
                      .lines = BUF_INIT,
                      .problem = BUF_INIT,
                      .signals = -1};
    if (read_settings(argc, argv, &s.config, e) < 0)
        return -1;
    pack_settings(&s.config, &s.settings);
    log_init("serve", (enum log_level)s.config.log_level);
    log_set_format(s.config.log_format);
    int rc = loop_signals(stop_signals, 3, &s.signals, e);
    if (rc == 0)
        rc = listen_at(s.config.socket, &s.listener, e);
    if (rc == 0)
        rc = http_sockets_open(&s.config, &s.http, e);
    if (rc == 0)
        rc = supervise(&s, e);
    listen_done(&s.listener);
    http_sockets_done(&s.http, &s.config);
    fd_close(&s.signals);
    buf_done(&s.lines);
    buf_done(&s.settings);
    buf_done(&s.problem);
    config_done(&s.config);
    return rc;
}

int verb_serve(int argc, char **argv) {
    bool help = false;
    const struct verb_flag flags[] = {{"help", &help}, {0}};
    AUTO_OPTIONS o = options_new();
    struct err e;
    if (options_parse(o, argc, argv, flags, &e) < 0)
        return report(&e, false);
    if (help) {
        print_help();
        return 0;
    }
    return serve_run(argc, argv, &e) < 0 ? report(&e, false) : 0;
}
