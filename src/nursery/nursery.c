/* See nursery.h. One loop: the warden's requests, the zygotes' answers, and SIGCHLD. This process
 * is root of its user namespace, which maps only ids that mean nothing to the host; it is PID 1 of
 * its pid namespace, so that when it dies (with the warden, at the latest) everything below dies
 * too. */

#include "nursery/nursery.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "nursery/birth.h"
#include "nursery/boxes.h"
#include "nursery/orders.h"
#include "nursery/zygotes.h"
#include "sandbox/mount.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* SECURITY: a warden that asks for what it may not is none. */
static void nursery_on_warden(struct chan *c, struct wire_in *in) {
    struct nursery *n = c->arg;
    if (orders_serve(n, in))
        return;
    log_error("warden sent what it may not, leaving message=%s", wire_type_name(in->type));
    _exit(1);
}

/* Leaving ends every process of the namespace. */
static void nursery_on_warden_gone(struct chan *c, const struct err *why) {
    (void)c;
    if (why->code == EPROTONOSUPPORT)
        log_error("warden is of another version, leaving error=%s", log_text(why->text));
    _exit(0);
}

static void nursery_on_signal(struct watch *w, uint32_t events) {
    struct nursery *n = w->arg;
    struct signalfd_siginfo info;
    (void)events;
    while (read(n->signals, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (!boxes_reaped(n, pid, status))
            zygotes_reaped(n, pid, status);
    }
}

void nursery_state(struct nursery *n, enum profile_state state, const char *what,
                   const char *modules) {
    struct wire_out o;
    n_state_put(&o, &(struct n_state){.state = state, .what = what, .modules = modules});
    chan_send(&n->warden, &o);
}

static void nursery_on_restart(struct timer *t) {
    struct nursery *n = t->arg;
    struct err e;
    if (zygotes_start(n, &e) < 0) {
        log_error("start zygote error=%s", log_text(e.text));
        nursery_state(n, PROFILE_BROKEN, e.text, "");
    }
}

/* Those of our user namespace, whose map has one line: from 0 on. */
static uint32_t count_ids(void) {
    char text[128];
    unsigned first, outside, count;
    struct err e;
    bool good = file_read_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof text, &e) == 0 &&
                sscanf(text, "%u %u %u", &first, &outside, &count) == 3;
    return good ? count : 0;
}

static int set_up(struct nursery *n, unsigned profile, struct err *e) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(022);
    if (loop_new(&n->loop, e) < 0)
        return -1;
    int chan = NURSERY_CHAN;
    n->warden =
        (struct chan){.on_msg = nursery_on_warden, .on_gone = nursery_on_warden_gone, .arg = n};
    if (fd_set_cloexec(chan, 1, e) < 0 || chan_init(&n->warden, n->loop, &chan, e) < 0 ||
        config_unpack(NURSERY_CONFIG, &n->config, e) < 0)
        return -1;
    close(NURSERY_CONFIG);
    log_init("nursery", (enum log_level)n->config.log_level);
    log_set_format(n->config.log_format);
    if (profile >= n->config.nprofiles)
        return err_set(e, EINVAL, "no profile %u", profile);
    n->profile = &n->config.profiles[profile];
    n->has_trees = *n->config.http.trees_dir != '\0';
    if (mounts_read(n->profile, &n->mounts, e) < 0)
        return -1;
    n->used = mmap(NULL, config_places(&n->config), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n->used == MAP_FAILED)
        return err_sys(e, "mmap");
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (mount_fs("proc", "/proc", MOUNT_NODEV | MOUNT_NOEXEC, NULL, e) < 0 ||
        mount_fs("tmpfs", "/tmp", MOUNT_NODEV, "mode=1777,size=64m", e) < 0)
        return -1;
    machine_open(n->machine);
    if (sethostname("sandbox", 7) < 0)
        return err_sys(e, "sethostname");
    n->single = setresuid(1, 0, 0) < 0; /* is there a second id to be had? */
    if (!n->single && setresuid(0, 0, 0) < 0)
        return err_sys(e, "setresuid");
    prctl(PR_SET_DUMPABLE, 1); /* zygotes enter inits, which are copies of us */
    n->ids = count_ids();
    return 0;
}

_Noreturn void nurse(unsigned profile) {
    static struct nursery n;
    struct err e;
    log_init("nursery", LOG_INFO);
    n.filter = n.setup = n.signals = n.warden.fd = -1;
    n.restart = (struct timer){.fn = nursery_on_restart, .arg = &n};
    n.signal_watch = (struct watch){.fd = -1, .fn = nursery_on_signal, .arg = &n};
    const int signals[] = {SIGCHLD};
    int r = set_up(&n, profile, &e);
    if (r == 0)
        r = loop_signals(signals, 1, &n.signals, &e);
    if (r == 0)
        r = loop_watch(n.loop, &n.signal_watch, n.signals, EPOLLIN, &e);
    if (r == 0)
        r = zygotes_init(&n, &e);
    if (r == 0) {
        n.python = xstrdup(n.profile->python);
        config_keep_numbers(&n.config); /* every init begins as a copy of us */
        r = zygotes_start(&n, &e);
    }
    if (r == 0) /* while Python starts */
        r = netpool_init(&n.nets, &e);
    malloc_trim(0); /* what was read and made above is free by now: no init has to copy it */
    if (r == 0)
        r = loop_run(n.loop, &e);
    log_error("nursery failed error=%s", log_text(e.text));
    if (n.warden.fd >= 0)
        nursery_state(&n, PROFILE_BROKEN, e.text, "");
    _exit(1);
}
