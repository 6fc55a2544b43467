/* The zygotes of a nursery: one or more Python processes that fork kernels. Each is watched,
 * replaced after a number of forks or an age (so that address layout and hash seed do not stay for
 * ever), and restarted when it dies. Kernels do not notice: they are re-parented to the nursery,
 * which reaps them. While none is ready, those to come wait. */

#include "nursery/zygotes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "nursery/kernels.h"
#include "sandbox/root.h"
#include "sandbox/seccomp.h"
#include "sandbox/seccomp_load.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PENDING 2   /* forks in flight per zygote: it does one at a time anyway */
#define LAST_WORDS  128 /* times 32 messages: more than a zygote has kernels */
#define FAIL_MAX    5   /* deaths in a row before the profile counts as broken */
#define TOO_OLD     97  /* how cell/zygote.py leaves a Python that cannot read the rest of it */

/* A line for each name of a list with commas. */
static void add_modules(struct buf *b, const char *key, const char *names) {
    while (*names) {
        size_t n = strcspn(names, ",");
        buf_addf(b, "%s %.*s\n", key, (int)n, names);
        names += n + (names[n] == ',');
    }
}

int zygotes_init(struct nursery *n, struct err *e) {
    AUTO_FD early = -1;
    if (seccomp_compile(SECCOMP_LATE, &n->filter, e) < 0 ||
        seccomp_compile(SECCOMP_EARLY, &early, e) < 0)
        return -1;
    struct stat st;
    if (fstat(early, &st) < 0 || (size_t)st.st_size > sizeof n->early ||
        pread(early, n->early, (size_t)st.st_size, 0) != st.st_size)
        return err_set(e, EIO, "the system call filter cannot be read");
    n->early_len = (size_t)st.st_size;
    AUTO_BUF b = BUF_INIT;
    for (unsigned i = 0; i < n->profile->sites.n; i++)
        buf_addf(&b, "site %s\n", n->profile->sites.items[i]);
    for (unsigned i = 0; i < n->profile->preload.n; i++)
        buf_addf(&b, "preload %s\n", n->profile->preload.items[i]);
    for (unsigned i = 0; i < n->profile->env.n; i++)
        buf_addf(&b, "env %s\n", n->profile->env.items[i]);
    if (n->profile->live)
        buf_adds(&b, "live\n");
    if (n->config.pip_index_url[0])
        buf_addf(&b, "index %s\n", n->config.pip_index_url);
    if (n->config.npm_registry[0])
        buf_addf(&b, "registry %s\n", n->config.npm_registry);
    add_modules(&b, "allow", n->config.policy_allow);
    add_modules(&b, "deny", n->config.policy_deny);
    return memfd_of("setup", b.data, b.len, &n->setup, e);
}

/* In the child. */
static _Noreturn void give_up(int chan, const char *what) {
    struct err e, ignored;
    struct wire_out o;
    err_sys(&e, "%s", what);
    z_lost_put(&o, &(struct z_lost){.why = e.text});
    wire_send(chan, &o, &ignored);
    _exit(127);
}

/* Whether that name in a directory is another program than the interpreter. */
static bool is_another(const char *python, size_t dir_len, const char *name) {
    char path[PATH_MAX];
    struct stat own, other;
    snprintf(path, sizeof path, "%.*s/%s", (int)dir_len, python, name);
    return stat(path, &other) == 0 && stat(python, &own) == 0 &&
           (own.st_ino != other.st_ino || own.st_dev != other.st_dev);
}

/* Its own directory comes first, with all that was installed beside it. Where names are missing
 * there (Debian has no python), ROOT_BIN has them, and comes before a directory in which they mean
 * another interpreter. */
static void write_path(const char *python, char *out, size_t cap) {
    const char *slash = strrchr(python, '/');
    size_t len = slash ? (size_t)(slash - python) : 0;
    bool another = is_another(python, len, "python") || is_another(python, len, "python3");
    snprintf(out, cap, "PATH=%s%.*s:%s/usr/local/bin:/usr/bin:/bin", another ? ROOT_BIN ":" : "",
             (int)len, python, another ? "" : ROOT_BIN ":");
}

/* In the child. The environment is all that Python's start-up depends on; cell/zygote.py takes out
 * what is only for it. One thread each for the libraries that would start more. */
static _Noreturn void become_zygote(struct nursery *n, int chan) {
    char path[PATH_MAX + 100];
    write_path(n->python, path, sizeof path);
    char *const envp[] = {
        path,
        (char *)"HOME=/tmp",
        (char *)"USER=user",
        (char *)"LANG=C.UTF-8",
        (char *)"PYTHONUNBUFFERED=1",
        (char *)"PYTHONDONTWRITEBYTECODE=1",
        (char *)"PYTHONIOENCODING=utf-8",
        (char *)"MPLCONFIGDIR=/tmp/matplotlib",
        (char *)"MPLBACKEND=Agg",
        (char *)"OPENBLAS_NUM_THREADS=1",
        (char *)"OMP_NUM_THREADS=1",
        (char *)"MKL_NUM_THREADS=1",
        NULL,
    };
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    int fds[3] = {fcntl(chan, F_DUPFD, 20), fcntl(n->filter, F_DUPFD, 20),
                  fcntl(n->setup, F_DUPFD, 20)};
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        give_up(chan, "open /dev/null");
    for (int i = 0; i < 3; i++) {
        if (fds[i] < 0 || dup2(fds[i], 3 + i) < 0)
            give_up(fds[0], "duplicate a descriptor");
    }
    close_range(6, ~0u, 0);
    if (chdir("/tmp") < 0)
        give_up(3, "/tmp");
    struct err e;
    if (seccomp_enter(n->early, n->early_len, NULL, &e) < 0)
        give_up(3, "load the system call filter");
    char *const argv[] = {n->python, (char *)ROOT_PYLIB "/cell/zygote.py", NULL};
    execve(n->python, argv, envp);
    give_up(3, n->python);
}

static void zygote_free(struct deferred *d) {
    struct zygote *z = d->arg;
    free(z);
}

static unsigned usable(struct nursery *n) {
    unsigned k = 0;
    for (struct zygote *z = n->zygotes; z; z = z->next)
        k += z->state != ZYGOTE_GONE && !z->retiring;
    return k;
}

/* What it was asked to fork will not come. */
static void forget_forks(struct box *b, const struct zygote *z) {
    for (struct kernel *k = b->kernels, *next; k; k = next) {
        next = k->next;
        if (k->zygote != z)
            continue;
        k->zygote = NULL;
        if (k->state == KERNEL_FORKING)
            kernels_failed(k, "the zygote died");
    }
}

static void zygote_on_gone(struct chan *c, const struct err *why) {
    struct zygote *z = c->arg;
    struct nursery *n = z->nursery;
    if (why->code == EPROTONOSUPPORT) { /* its module is of another build than we */
        z->said_why = true;
        nursery_state(n, PROFILE_BROKEN, why->text, "");
    }
    if (z->state == ZYGOTE_READY && !z->retiring)
        log_warn("zygote gone pid=%d", (int)z->pid);
    bool young = z->state == ZYGOTE_STARTING;
    z->state = ZYGOTE_GONE;
    loop_timer_stop(n->loop, &z->age);
    kill(z->pid, SIGKILL);
    for (struct box *b = n->boxes; b; b = b->next)
        forget_forks(b, z);
    if (z->retiring)
        return;
    n->failures = young ? n->failures + 1 : 0;
    if (z->said_why || n->failures >= FAIL_MAX) {
        if (!z->said_why)
            nursery_state(n, PROFILE_BROKEN,
                          n->why[0] ? n->why : "its interpreter dies while it starts", "");
        return;
    }
    nursery_state(n, PROFILE_RESTARTING, "the zygote died", "");
    loop_timer_in_ms(n->loop, &n->restart, young ? 200u << n->failures : 0);
}

/* Those that have had their time go once another is ready and they owe nothing. */
static void retire_old(struct nursery *n) {
    bool young = false;
    for (struct zygote *z = n->zygotes; z; z = z->next)
        young = young || (z->state == ZYGOTE_READY && !z->retiring);
    for (struct zygote *z = n->zygotes; young && z; z = z->next) {
        if (!z->retiring || z->state != ZYGOTE_READY || z->pending)
            continue;
        log_info("zygote replaced pid=%d forks=%lu", (int)z->pid, z->forks);
        z->state = ZYGOTE_LEAVING;
        kill(z->pid, SIGKILL);
    }
}

/* ---- what zygotes say ---- */

union said {
    struct z_ready ready;
    struct z_broken broken;
    struct z_lost lost;
    struct z_forked forked;
    struct z_failed failed;
    struct z_exited exited;
};

static void zygote_said_ready(struct zygote *z, const union said *m) {
    struct nursery *n = z->nursery;
    z->state = ZYGOTE_READY;
    n->failures = 0;
    loop_timer_in_ms(n->loop, &z->age, (uint64_t)n->config.zygote_age_s * 1000);
    nursery_state(n, PROFILE_READY, m->ready.version, m->ready.modules);
    retire_old(n);
    zygotes_dispatch(n);
}

static void zygote_said_broken(struct zygote *z, const union said *m) {
    z->said_why = true;
    nursery_state(z->nursery, PROFILE_BROKEN, m->broken.why, "");
}

static void zygote_said_lost(struct zygote *z, const union said *m) {
    snprintf(z->nursery->why, sizeof z->nursery->why, "its interpreter cannot be started: %.300s",
             m->lost.why);
}

/* A fork was answered: there is room for another. */
static void settle(struct zygote *z) {
    zygotes_dispatch(z->nursery);
    retire_old(z->nursery);
}

static void zygote_said_forked(struct zygote *z, const union said *m) {
    struct kernel *k = kernels_find(z->nursery, m->forked.sandbox, m->forked.number);
    if (z->pending)
        z->pending--;
    if (k)
        kernels_forked(k, (pid_t)m->forked.pid);
    settle(z);
}

static void zygote_said_failed(struct zygote *z, const union said *m) {
    struct kernel *k = kernels_find(z->nursery, m->failed.sandbox, m->failed.number);
    if (z->pending)
        z->pending--;
    if (k)
        kernels_failed(k, m->failed.why);
    settle(z);
}

static void zygote_said_exited(struct zygote *z, const union said *m) {
    struct kernel *k = kernels_find(z->nursery, m->exited.sandbox, m->exited.number);
    if (k && k->pid == (pid_t)m->exited.pid)
        kernels_exited(k, (int)m->exited.status);
}

#define STARTING (1u << ZYGOTE_STARTING)
#define WORKING  (1u << ZYGOTE_READY | 1u << ZYGOTE_LEAVING)

static const struct {
    enum wire_type type;
    enum wire_payload payload;
    unsigned states;
    void (*fn)(struct zygote *z, const union said *m);
} sayings[] = {
    {WIRE_Z_READY, WIRE_PAYLOAD_z_ready, STARTING, zygote_said_ready},
    {WIRE_Z_BROKEN, WIRE_PAYLOAD_z_broken, STARTING, zygote_said_broken},
    {WIRE_Z_LOST, WIRE_PAYLOAD_z_lost, STARTING, zygote_said_lost},
    {WIRE_Z_FORKED, WIRE_PAYLOAD_z_forked, WORKING, zygote_said_forked},
    {WIRE_Z_FAILED, WIRE_PAYLOAD_z_failed, WORKING, zygote_said_failed},
    {WIRE_Z_EXITED, WIRE_PAYLOAD_z_exited, WORKING, zygote_said_exited},
};
#define SAYINGS (sizeof sayings / sizeof *sayings)

bool zygotes_allows(enum wire_type type, enum zygote_state state) {
    for (size_t i = 0; i < SAYINGS; i++) {
        if (sayings[i].type == type)
            return sayings[i].states & 1u << state;
    }
    return false;
}

static bool zygote_serve(struct zygote *z, struct wire_in *in) {
    union said m;
    struct err e;
    for (size_t i = 0; i < SAYINGS; i++) {
        if (sayings[i].type != in->type)
            continue;
        if (!zygotes_allows(in->type, z->state) ||
            wire_get(in, wire_layout(sayings[i].payload), &m, &e) < 0)
            return false;
        sayings[i].fn(z, &m);
        return true;
    }
    return false;
}

static void zygote_on_msg(struct chan *c, struct wire_in *in) {
    struct zygote *z = c->arg;
    if (zygote_serve(z, in))
        return;
    log_error("zygote sent what it may not, ending it message=%s", wire_type_name(in->type));
    kill(z->pid, SIGKILL);
}

static void replace(struct zygote *z) {
    struct err e;
    struct nursery *n = z->nursery;
    if (z->retiring || z->state != ZYGOTE_READY)
        return;
    z->retiring = true; /* it goes on working until the new one is ready */
    if (zygotes_start(n, &e) < 0)
        log_error("start zygote error=%s", log_text(e.text));
}

static void zygote_on_age(struct timer *t) {
    replace(t->arg);
}

static int start_one(struct nursery *n, struct err *e) {
    int pair[2];
    if (wire_pair(pair, e) < 0)
        return -1;
    pid_t pid = fork();
    if (pid < 0) {
        fd_close_all(pair, 2);
        return err_sys(e, "fork a zygote");
    }
    if (pid == 0)
        become_zygote(n, pair[1]);
    n->why[0] = '\0';
    close(pair[1]);
    struct zygote *z = xcalloc(1, sizeof *z);
    z->nursery = n;
    z->pid = pid;
    z->chan = (struct chan){.on_msg = zygote_on_msg, .on_gone = zygote_on_gone, .arg = z};
    z->age = (struct timer){.fn = zygote_on_age, .arg = z};
    z->free_later = (struct deferred){.fn = zygote_free, .arg = z};
    z->next = n->zygotes;
    n->zygotes = z;
    return chan_init(&z->chan, n->loop, &pair[0], e);
}

int zygotes_start(struct nursery *n, struct err *e) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned want = n->profile->zygotes ? n->profile->zygotes : cores > 16 ? 4 : cores > 4 ? 2 : 1;
    for (unsigned have = usable(n); have < want; have++) {
        if (start_one(n, e) < 0)
            return -1;
    }
    return 0;
}

/* The ready zygote with the least to do; one that is retiring only while there is no other. */
static struct zygote *choose(struct nursery *n) {
    struct zygote *best = NULL;
    for (struct zygote *z = n->zygotes; z; z = z->next) {
        if (z->state != ZYGOTE_READY || z->pending >= MAX_PENDING)
            continue;
        if (!best || (best->retiring && !z->retiring) ||
            (best->retiring == z->retiring && z->pending < best->pending))
            best = z;
    }
    return best;
}

static void give(struct zygote *z, struct kernel *k) {
    const struct box *b = k->box;
    struct wire_out o;
    struct z_fork m = {.sandbox = b->id, .number = k->number, .uid = b->uid};
    m.fds[KERNEL_INIT] = b->pidfd;
    m.fds[KERNEL_HAND] = b->hand;
    memcpy(m.fds + KERNEL_CTL, k->ends, sizeof k->ends);
    m.procs.n = k->nprocs;
    memcpy(m.procs.fd, k->procs, k->nprocs * sizeof *k->procs);
    z_fork_put(&o, &m);
    k->state = KERNEL_FORKING;
    k->zygote = z;
    z->pending++;
    chan_send(&z->chan, &o);
    if (++z->forks >= z->nursery->config.zygote_forks)
        replace(z);
}

static struct kernel *next_waiting(struct nursery *n) {
    struct kernel *first = NULL;
    for (struct box *b = n->boxes; b; b = b->next) {
        for (struct kernel *k = b->state == BOX_DYING ? NULL : b->kernels; k; k = k->next) {
            if (k->state == KERNEL_WAITING && (!first || k->turn < first->turn))
                first = k;
        }
    }
    return first;
}

void zygotes_dispatch(struct nursery *n) {
    for (;;) {
        struct zygote *z = choose(n);
        struct kernel *k = z ? next_waiting(n) : NULL;
        if (!k)
            return;
        give(z, k);
    }
}

/* Another try would end in the same way. */
static void too_old(struct nursery *n) {
    loop_timer_stop(n->loop, &n->restart);
    nursery_state(n, PROFILE_BROKEN, "its interpreter is older than Python 3.7", "");
}

bool zygotes_reaped(struct nursery *n, pid_t pid, int status) {
    for (struct zygote **p = &n->zygotes; *p; p = &(*p)->next) {
        struct zygote *z = *p;
        if (z->pid != pid)
            continue;
        if (z->state != ZYGOTE_GONE) {
            for (int i = 0; i < LAST_WORDS && !z->chan.gone; i++)
                chan_pump(&z->chan); /* what it said before it died */
            struct err e = {0};
            if (z->state != ZYGOTE_GONE)
                zygote_on_gone(&z->chan, &e);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
            log_error("zygote could not be started why=%s", log_text(n->why));
        if (WIFEXITED(status) && WEXITSTATUS(status) == TOO_OLD)
            too_old(n);
        chan_done(&z->chan);
        for (p = &n->zygotes; *p != z; p = &(*p)->next)
            ;
        *p = z->next;
        loop_defer(n->loop, &z->free_later);
        return true;
    }
    return false;
}
