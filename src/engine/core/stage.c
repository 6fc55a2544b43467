/* See stage.h. */

#include "engine/core/stage.h"

#include "base/fd.h"
#include "engine/core/engine.h"
#include "engine/core/sandbox.h"
#include "loop/copy.h"
#include "loop/crew.h"
#include "wire/codec.h"
#include "wire/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FEW_FILES 16 /* that may as well be closed at once */

int stage_cgroup(const struct sandbox *s, const struct limits *l, bool all, struct err *e) {
    const struct limits *d = &s->engine->config.defaults;
    const struct cgroup_fds *k = s->cgroup;
    if ((all || config_group_bytes(l) != config_group_bytes(d)) &&
        cgroup_fds_set_memory(k, config_group_bytes(l), e) < 0)
        return -1;
    if ((all || l->pids != d->pids) && cgroup_fds_set_pids(k, l->pids, e) < 0)
        return -1;
    return !all && l->cpus_percent == d->cpus_percent ? 0
                                                      : cgroup_fds_set_cpus(k, l->cpus_percent, e);
}

void inputs_close(struct crew *crew, struct input_file *inputs, unsigned n) {
    unsigned nfds = 0;
    for (unsigned i = 0; i < n; i++) {
        nfds += inputs[i].fd >= 0;
        free(inputs[i].bytes);
        inputs[i].bytes = NULL;
    }
    int *fds = nfds > FEW_FILES ? xcalloc(nfds, sizeof *fds) : NULL;
    for (unsigned i = 0, at = 0; i < n; i++) {
        if (fds && inputs[i].fd >= 0)
            fds[at++] = fd_take(&inputs[i].fd);
        else if (inputs[i].fd >= 0)
            crew_close(crew, &inputs[i].fd);
    }
    if (fds)
        crew_close_all(crew, fds, nfds);
}

void inputs_free(struct input_file *inputs, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        free(inputs[i].path);
        free(inputs[i].bytes);
        fd_close(&inputs[i].fd);
    }
    free(inputs);
}

static void stage_on_limited(void *arg, struct wire_in *in);
static void stage_on_open(void *arg, struct file_answer *a);
static void stage_on_network(void *arg, const struct err *why);
static void stage_on_bound(void *arg, struct wire_in *in);
static void stage_on_tree(void *arg, struct wire_in *in);

static int too_busy(struct err *e) {
    return err_user(e, "sandbox_lost", "the sandbox has too much to answer");
}

static int stage_ask(struct stage *t, const struct wire_out *o, struct err *e) {
    if (!sandbox_ask_for(t->sandbox, o, stage_on_limited, t))
        return too_busy(e);
    t->waiting++;
    return 0;
}

static int ask_input(struct stage *t, struct err *e) {
    const struct input_file *in = &t->inputs[t->at];
    const struct file_question q = {.op = FILE_CREATE, .path = in->path, .mode = in->mode};
    t->ask.fn = stage_on_open;
    t->ask.arg = t;
    return files_ask(t->sandbox, &q, &t->ask) ? 0 : too_busy(e);
}

static int ask_tree(struct stage *t, struct err *e) {
    struct wire_out o;
    if (!t->tree)
        return 0;
    if (t->sandbox->version < RUN_TREE_SINCE)
        return err_user(e, "sandbox_lost", "the sandbox is of an older version");
    i_tree_put(&o, &(struct i_tree){.id = t->tree});
    if (!sandbox_ask_for(t->sandbox, &o, stage_on_tree, t))
        return too_busy(e);
    t->waiting++;
    return 0;
}

/* All at once: init takes them in this order. */
static int ask_binds(struct stage *t, struct err *e) {
    struct wire_out o;
    for (unsigned i = 0; i < t->nbinds; i++) {
        const struct host_bind *b = &t->binds[i];
        i_bind_put(&o, &(struct i_bind){.allowed = b->allowed,
                                        .below = b->below,
                                        .path = b->path,
                                        .writable = b->writable});
        if (!sandbox_ask_for(t->sandbox, &o, stage_on_bound, t))
            return too_busy(e);
        t->waiting++;
    }
    return 0;
}

/* Whether init has something to do about them. The control group and the kernel hold the limits
 * that are left out, or init watches them (I_WATCH); a program need not wait for those. */
static bool is_for_init(const struct limits *l, const struct limits *born) {
    struct limits rest = *l;
    rest.cpus_percent = born->cpus_percent;
    rest.pids = born->pids;
    rest.open_files = born->open_files;
    return !limits_same(&rest, born, LIMIT_OF_WHOLE);
}

/* Init shows another memory in /proc, which cannot fail; a program that waits for that itself
 * begins meanwhile. */
static int tell_init(struct stage *t, const struct limits *born, struct err *e) {
    struct wire_out o;
    struct limits rest = *t->limits;
    rest.memory_mb = born->memory_mb;
    i_limits_put(&o, &(struct i_limits){.limits = *t->limits});
    if (!t->waits_itself || is_for_init(&rest, born))
        return stage_ask(t, &o, e);
    t->unheard = sandbox_ask(t->sandbox, ASKED_MEMORY, &o);
    return t->unheard ? 0 : too_busy(e);
}

/* The files come last, one after the other. */
int stage_begin(struct stage *t, struct err *e) {
    const struct limits *l = t->limits;
    struct wire_out o;
    t->to = -1;
    if (stage_cgroup(t->sandbox, l, false, e) < 0)
        return -1;
    struct limits born = config_born(&t->sandbox->engine->config, t->sandbox->pool->config);
    if (is_for_init(l, &born) && tell_init(t, &born, e) < 0)
        return -1;
    if (!cgroup_fds_there(t->sandbox->cgroup)) {
        struct i_watch m = {.limits = *l};
        if (t->sandbox->pool->config->live) /* each cell has its own; init would add up all */
            m.limits.cpu_seconds = 0;
        i_watch_put(&o, &m);
        if (stage_ask(t, &o, e) < 0)
            return -1;
    }
    if (t->network && network_set(t->sandbox, t->network, stage_on_network, t, e) < 0)
        return -1;
    t->waiting += t->network != NULL;
    if (ask_tree(t, e) < 0 || ask_binds(t, e) < 0 || (t->ninputs && ask_input(t, e) < 0))
        return -1;
    return t->waiting > 0 || t->ninputs > 0;
}

static const struct input_file *at_hand(const struct stage *t) {
    return &t->inputs[t->at];
}

/* Init closes a file after it has given it to us, and what somebody has open to write to cannot be
 * run: its next answer says that it has. */
static int ask_whether_closed(struct stage *t, struct err *e) {
    struct wire_out o;
    i_echo_put(&o, &(struct i_echo){.value = 0});
    return stage_ask(t, &o, e);
}

/* The file at hand is whole: the next one. */
static int end_input(struct stage *t, struct err *e) {
    struct stat st;
    int r = fstat(t->to, &st) < 0 ? err_sys(e, "fstat") : 0;
    fd_close(&t->to);
    if (r < 0)
        return -1;
    t->inputs[t->at].size = (uint64_t)st.st_size;
    return ++t->at < t->ninputs ? ask_input(t, e) : ask_whether_closed(t, e);
}

static int copy_failed(const struct stage *t, struct err *e) {
    return err_user(e, e->code == ENOSPC ? "disk_full" : "copy_failed", "file for %.150s: %s",
                    at_hand(t)->path, strerror(e->code));
}

/* In the words of the guest: it failed, all is there, or there is more to wait for. */
static void stage_go_on(struct stage *t, int r, const struct err *why) {
    if (r < 0) {
        sandbox_unask(t->sandbox, t);
        files_unask(&t->ask);
        network_leave(t->sandbox, t);
        t->done(t->arg, why);
    } else if (t->waiting == 0 && !t->copy && !files_is_asked(&t->ask)) {
        t->done(t->arg, NULL);
    }
}

static void stage_on_copied(void *arg, const struct err *why) {
    struct stage *t = arg;
    struct err e;
    t->copy = NULL;
    if (why)
        e = *why;
    stage_go_on(t, why ? copy_failed(t, &e) : end_input(t, &e), &e);
}

/* A large file is copied beside the loop. Its source may be one that the client still writes to:
 * what it has now is what counts. */
static int copy_input(struct stage *t, struct err *e) {
    struct stat st;
    const struct input_file *in = at_hand(t);
    int from = in->fd;
    if (in->bytes)
        return fd_write_all(t->to, in->bytes, in->size, e) < 0 ? copy_failed(t, e)
                                                               : end_input(t, e);
    if (fstat(from, &st) < 0)
        return err_sys(e, "fstat");
    if ((uint64_t)st.st_size <= COPY_SMALL) {
        if (copy_now(from, t->to, (uint64_t)st.st_size, e) < 0)
            return copy_failed(t, e);
        return end_input(t, e);
    }
    int own_from = fcntl(from, F_DUPFD_CLOEXEC, 3), own_to = fcntl(t->to, F_DUPFD_CLOEXEC, 3);
    if (own_from < 0 || own_to < 0) {
        err_sys(e, "duplicate a descriptor");
        fd_close(&own_from);
        fd_close(&own_to);
        return -1;
    }
    t->copy = copy_begin(t->sandbox->engine->crew, &own_from, &own_to, (uint64_t)st.st_size,
                         stage_on_copied, t);
    return 0;
}

static int take_input(struct stage *t, struct file_answer *a, struct err *e) {
    if (a->why)
        return err_user(e, a->why->code == ENOSPC ? "disk_full" : "bad_path", "file for %.150s: %s",
                        at_hand(t)->path, a->why->text);
    t->to = fd_take(&a->fd);
    return copy_input(t, e);
}

static void stage_on_open(void *arg, struct file_answer *a) {
    struct stage *t = arg;
    struct err e;
    if (!a->gone) /* otherwise the guest knows */
        stage_go_on(t, take_input(t, a, &e), &e);
}

static int take_limited(struct wire_in *in, struct err *e) {
    if (in->type == WIRE_I_REPLY)
        return 0;
    struct i_error no;
    i_error_get(in, &no, e);
    return err_set(e, EIO, "init: %s", no.why);
}

static void stage_on_limited(void *arg, struct wire_in *in) {
    struct stage *t = arg;
    struct err e;
    if (!in)
        return; /* the sandbox ends, and its guest knows */
    t->waiting--;
    stage_go_on(t, take_limited(in, &e), &e);
}

/* What is wrong with the host's side is told in few words: it is not the asker's machine. */
static int take_bound(const struct stage *t, struct wire_in *in, struct err *e) {
    struct i_error no;
    if (in->type == WIRE_I_REPLY)
        return 0;
    i_error_get(in, &no, e);
    const struct host_bind *b = &t->binds[t->bound];
    return err_user(e, "bad_bind", "binds: %.100s%s%.100s at %.100s: %s", b->allowed,
                    *b->below ? "/" : "", b->below, b->path, strerror((int)no.errnum));
}

static int take_tree(struct wire_in *in, struct err *e) {
    struct i_error no;
    if (in->type == WIRE_I_REPLY)
        return 0;
    i_error_get(in, &no, e);
    return err_user(e, "profile_broken", "the profile's files cannot be shown: %s",
                    strerror((int)no.errnum));
}

static void stage_on_tree(void *arg, struct wire_in *in) {
    struct stage *t = arg;
    struct err e;
    if (!in)
        return;
    t->waiting--;
    stage_go_on(t, take_tree(in, &e), &e);
}

static void stage_on_bound(void *arg, struct wire_in *in) {
    struct stage *t = arg;
    struct err e;
    if (!in)
        return;
    t->waiting--;
    int r = take_bound(t, in, &e);
    t->bound++;
    stage_go_on(t, r, &e);
}

static void stage_on_network(void *arg, const struct err *why) {
    struct stage *t = arg;
    t->waiting--;
    stage_go_on(t, why ? -1 : 0, why);
}

void stage_done(struct stage *t) {
    files_unask(&t->ask);
    copy_leave(t->copy);
    t->copy = NULL;
    if (!t->sandbox)
        return;
    network_leave(t->sandbox, t);
    fd_close(&t->to);
}
