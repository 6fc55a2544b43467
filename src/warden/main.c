/* cloche-warden: started by `cloche serve` or `cloche run`, never by hand. Descriptors: 3 the
 * packed configuration, our part of it, 4 the listening socket, 5 the life line (its end of file is
 * our end), 6 where to say that we are ready, 7 all of the configuration, which is the server's and
 * not read here, from 8 on what the server needs for HTTP. SIGTERM lets the server
 * finish first, SIGHUP is passed on to it (keys); new profiles come through the life line. Exit
 * status 3 means that this machine or configuration cannot do.
 */

#include "warden/warden.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/cores.h"
#include "warden/gate.h"
#include "warden/groups.h"
#include "warden/nurseries.h"
#include "warden/reload.h"
#include "warden/say.h"
#include "warden/server.h"
#include "warden/slots.h"
#include "warden/survivors.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_CANNOT 3
#define PART_ENOUGH 1024 /* ids */
#define BIRTH_MS    50   /* how long the start waits for nurseries to be born */

static void stop(struct warden *w) {
    w->stopping = true;
    loop_stop(w->loop);
}

static int socket_stat(const struct warden *w, struct sockaddr_un *a, struct stat *st) {
    socklen_t len = sizeof *a;
    memset(a, 0, sizeof *a);
    if (getsockname(w->listen_fd, (struct sockaddr *)a, &len) < 0 || a->sun_path[0] != '/')
        return -1;
    return lstat(a->sun_path, st);
}

static void socket_note(struct warden *w) {
    struct sockaddr_un a;
    struct stat st;
    if (socket_stat(w, &a, &st) == 0 && S_ISSOCK(st.st_mode)) {
        w->socket_dev = st.st_dev;
        w->socket_ino = st.st_ino;
    }
}

/* The supervisor is gone or about to be: a name that nobody listens behind must not stay, and if it
 * was killed nobody else removes it. Another engine may have taken the name since. */
static void socket_remove(const struct warden *w) {
    struct sockaddr_un a;
    struct stat st;
    if (socket_stat(w, &a, &st) == 0 && w->socket_ino && st.st_dev == w->socket_dev &&
        st.st_ino == w->socket_ino)
        unlink(a.sun_path);
}

/* The supervisor tells of new profiles, or ends. */
static void on_life(struct watch *watch, uint32_t events) {
    struct warden *w = watch->arg;
    struct err e;
    (void)events;
    AUTO_WIRE_IN in = {0};
    enum wire_got got = wire_recv(w->life_fd, &in, &e);
    if (got == WIRE_NONE)
        return;
    if (got == WIRE_GOT && in.type == WIRE_L_CONFIG) {
        reload_serve(w, &in);
        return;
    }
    socket_remove(w);
    stop(w);
}

static void on_server_restart(struct timer *t) {
    struct warden *w = t->arg;
    struct err e;
    if (server_start(w, &e) < 0) {
        log_error("start server error=%s", log_text(e.text));
        loop_timer_in_ms(w->loop, t, 1000);
    }
}

static void on_signal(struct watch *watch, uint32_t events) {
    struct warden *w = watch->arg;
    struct signalfd_siginfo info;
    (void)events;
    while (read(w->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP && w->server > 0)
            kill(w->server, SIGHUP);
        else if (info.ssi_signo == SIGTERM && w->server > 0 && !w->draining) {
            w->draining = true;
            kill(w->server, SIGTERM);
        } else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGHUP)
            stop(w);
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == w->server)
            server_reaped(w, status);
        else if (pid == w->shrinker)
            w->shrinker = 0;
        else if (pid == w->gate.pid)
            gate_reaped(w, status);
        else
            nurseries_reaped(w, pid, status);
    }
}

static enum cgroup_kind wanted_cgroup(const char *word) {
    return strcmp(word, "v1") == 0 ? CGROUP_V1 : strcmp(word, "v2") == 0 ? CGROUP_V2 : CGROUP_NONE;
}

static int find_groups(struct warden *w, struct err *e) {
    enum cgroup_kind want = wanted_cgroup(w->config.cgroup);
    if (strcmp(w->config.cgroup, "none") == 0)
        w->cgroups = (struct cgroup_root){.kind = CGROUP_NONE, .why = "switched off (cgroup=none)"};
    else if (cgroup_root_open(&w->cgroups, want, e) < 0)
        return -1;
    else
        cgroup_sweep(&w->cgroups);
    return 0;
}

/* Says aloud what is good enough to start with, but weaker than it could be. */
static void warn_of_weakness(const struct warden *w) {
    if (w->cgroups.kind == CGROUP_NONE) {
        log_warn("no control groups: %s", w->cgroups.why);
        log_warn("memory, CPU and process limits are watched, not enforced; see `cloche doctor`");
    }
    if (w->ids.single)
        log_warn("no id range: all sandboxes share one uid; see `cloche doctor`");
}

/* What the machine gives, against what the operator demands. */
static int check_machine(struct warden *w, struct err *e) {
    uint32_t need;
    if (probe_minimum(w->config.minimum, &need, e) < 0)
        return -1;
    probe_run_with(&w->ids, &w->cgroups, &w->probe);
    return probe_check(&w->probe, need, e);
}

static uint32_t random_below(uint32_t n) {
    uint32_t bits = 0;
    (void)!getrandom(&bits, sizeof bits, 0); /* 0 will do */
    return bits % n;
}

/* A part of the id range for each profile that may yet come, if that leaves enough for each: parts
 * cannot change while sandboxes have ids of them. Where there is an id for every sandbox only
 * without live kernels, there are none. Where in its part an engine begins is left to chance:
 * several share the range, and some limits of the kernel count by uid, what outlived its engine
 * included. */
static void divide_ids(struct warden *w) {
    uint32_t ids = w->ids.count;
    unsigned named = config_named(&w->config, w->config.nprofiles);
    w->parts = CONFIG_MAX_PROFILES;
    w->nslots = config_places(&w->config);
    if (ids / w->parts <= w->nslots + 1 && !w->ids.single)
        w->nslots = w->config.max_sandboxes;
    uint32_t each = w->nslots + 1;
    while (w->parts > w->config.nprofiles &&
           (ids / w->parts < PART_ENOUGH || ids / w->parts <= each))
        w->parts--;
    if (!w->ids.single && ids / w->parts > each)
        w->ids_from = random_below(ids / w->parts - each + 1);
    if (w->ids.single || ids / w->parts >= each || named == w->parts)
        return;
    w->parts = named;
    w->no_live = true;
    log_warn("%u ids are too few for live sandboxes, there will be none; see `cloche doctor`", ids);
    for (unsigned i = 0; i < named; i++)
        warden_say(w, "live %s off", w->config.profiles[i].name);
}

static int set_up(struct warden *w, struct err *e) {
    const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    if (loop_new(&w->loop, e) < 0 || loop_signals(signals, 4, &w->signals, e) < 0 ||
        loop_watch(w->loop, &w->signal_watch, w->signals, EPOLLIN, e) < 0 ||
        loop_watch(w->loop, &w->life_watch, w->life_fd, EPOLLIN, e) < 0)
        return -1;
    const struct limits *d = &w->config.defaults;
    /* tmpfs is memory: a full disk is ENOSPC before it is out of memory. */
    w->limits = (struct cgroup_limits){
        .memory_bytes = config_group_bytes(d), .pids = d->pids, .cpus_percent = d->cpus_percent};
    divide_ids(w);
    w->slots = xcalloc(w->nslots, sizeof *w->slots);
    cores_allow_limit();
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    /* The interpreters start while the machine is checked, which begins when the last of them is on
     * its way: both make mounts, and would wait for each other. Nobody can ask for a sandbox before
     * the server is there. */
    for (unsigned i = 0; i < w->config.nprofiles; i++) {
        const struct config_profile *p = &w->config.profiles[i];
        if (!p->removed && !p->live && nurseries_add(w, i, e) < 0)
            return -1;
    }
    if (w->all) {
        struct pollfd born = {.fd = w->all->chan.fd, .events = POLLIN};
        (void)poll(&born, 1, BIRTH_MS);
    }
    if (check_machine(w, e) < 0)
        return -1;
    warn_of_weakness(w);
    gate_start(w);
    if (server_start(w, e) < 0)
        return -1;
    warden_say(w, "listening");
    return 0;
}

/* Kills the server and the nurseries and waits for them: with a nursery everything in it is dead.
 */
static void tear_down(struct warden *w) {
    w->stopping = true;
    fd_close(&w->ready_fd); /* that an interpreter became ready meanwhile is no news */
    if (w->server > 0)
        kill(w->server, SIGKILL);
    if (w->shrinker > 0)
        kill(w->shrinker, SIGKILL);
    gate_end(w);
    for (struct nursery_child *n = w->all; n; n = n->next) {
        chan_pump(&n->chan); /* one that was just born */
        if (n->pid > 0)
            kill(n->pid, SIGKILL);
        if (n->birth > 0)
            kill(n->birth, SIGKILL);
        chan_done(&n->chan);
    }
    chan_done(&w->server_chan);
    for (unsigned i = 0; w->slots && i < w->nslots; i++) {
        if (w->slots[i].made) /* a paused sandbox does not die before it is thawed */
            cgroup_slot_kill(&w->cgroups, &w->slots[i].cgroup);
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    for (unsigned i = 0; w->slots && i < w->nslots; i++) {
        survivors_free(&w->slots[i]);
        groups_forget(w, &w->slots[i]);
        if (w->slots[i].made)
            cgroup_slot_done(&w->cgroups, &w->slots[i].cgroup, false);
    }
    cgroup_root_close(&w->cgroups);
    nurseries_free(w);
    free(w->slots);
    loop_free(w->loop);
    config_done(&w->config);
}

int main(void) {
    static struct warden w;
    struct err e = {0};
    log_init("warden", LOG_INFO);
    signal(SIGPIPE, SIG_IGN); /* whoever reads the log may leave */
    w.config_fd = 3, w.listen_fd = 4, w.life_fd = 5, w.ready_fd = 6, w.all_fd = 7;
    w.signals = -1;
    w.life_watch = (struct watch){.fd = -1, .fn = on_life, .arg = &w};
    w.signal_watch = (struct watch){.fd = -1, .fn = on_signal, .arg = &w};
    w.server_restart = (struct timer){.fn = on_server_restart, .arg = &w};
    w.dirty_timer = (struct timer){.fn = slots_recheck, .arg = &w};
    w.spare_timer = (struct timer){.fn = slots_spare, .arg = &w};
    w.stranded_timer = (struct timer){.fn = slots_weigh_stranded, .arg = &w};
    w.server_chan = (struct chan){.fd = -1, .gone = true};
    gate_init(&w);
    for (int fd = 3; fd < HTTP_FDS; fd++) {
        if (fd_set_cloexec(fd, 1, &e) < 0) {
            log_error("cloche-warden is started by `cloche serve`");
            return 125;
        }
    }
    if (config_unpack(w.config_fd, &w.config, &e) < 0 ||
        idmap_find(w.config.id_user, &w.ids, &e) < 0 || find_groups(&w, &e) < 0) {
        warden_say(&w, "problem %s", e.text);
        return EXIT_CANNOT;
    }
    for (int fd = HTTP_FDS; fd < HTTP_FDS + (int)config_http_fds(&w.config); fd++) {
        if (fd_set_cloexec(fd, 1, &e) < 0)
            return 125;
    }
    log_init("warden", (enum log_level)w.config.log_level);
    log_set_format(w.config.log_format);
    socket_note(&w);
    int r = set_up(&w, &e);
    if (r == 0)
        r = loop_run(w.loop, &e);
    if (r < 0)
        warden_say(&w, "problem %s", e.text);
    w.cannot |= r < 0 && w.server_started_ns == 0;
    tear_down(&w);
    return w.cannot ? EXIT_CANNOT : r < 0 ? 1 : 0;
}
