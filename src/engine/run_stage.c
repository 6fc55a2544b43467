/* What comes before a program starts: limits that differ from the ones its sandbox was made with,
 * and the files it is given. With neither there is nothing to wait for. */

#include "engine/run_state.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_knobs(struct run *r, struct err *e) {
    const struct config_limits *l = &r->req.limits, *d = &r->engine->config.defaults;
    const struct knobs *k = r->sandbox->knobs;
    if (config_group_bytes(l) != config_group_bytes(d) &&
        knobs_set_memory(k, config_group_bytes(l), e) < 0)
        return -1;
    if (l->pids != d->pids && knobs_set_pids(k, l->pids, e) < 0)
        return -1;
    return l->cpus_percent == d->cpus_percent ? 0 : knobs_set_cpus(k, l->cpus_percent, e);
}

static void ask_input(struct run *r) {
    const struct run_input *in = &r->req.inputs[r->staged];
    struct wire_out o;
    wire_begin(&o, WIRE_I_OPEN);
    wire_put_u32(&o, O_WRONLY | O_CREAT | O_TRUNC);
    wire_put_u32(&o, in->mode);
    wire_put_str(&o, in->path);
    sandbox_ask(r->sandbox, ASKED_INPUT, &o);
}

bool run_stage(struct run *r) {
    const struct config_limits *l = &r->req.limits;
    struct wire_out o;
    struct err e;
    if (set_knobs(r, &e) < 0) {
        run_fail(r, &e);
        return true;
    }
    if (l->disk_mb != r->engine->config.defaults.disk_mb) {
        wire_begin(&o, WIRE_I_LIMITS);
        wire_put_u32(&o, l->disk_mb);
        sandbox_ask(r->sandbox, ASKED_LIMITS, &o);
    }
    if (!knobs_there(r->sandbox->knobs)) {
        wire_begin(&o, WIRE_I_WATCH);
        wire_put_u32(&o, l->memory_mb);
        wire_put_u32(&o, l->cpu_seconds);
        sandbox_ask(r->sandbox, ASKED_WATCH, &o);
    }
    if (r->req.ninputs)
        ask_input(r);
    return r->sandbox->nasked > 0;
}

/* Copies without a loop through user space; the source is a regular file, so nothing blocks. */
static int copy(int from, int to, struct err *e) {
    off_t at = 0;
    for (;;) {
        ssize_t n = sendfile(to, from, &at, 1 << 20);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "copy");
        if (n == 0)
            return 0;
    }
}

static int take_input(struct run *r, struct wire_in *in, struct err *e) {
    struct run_input *input = &r->req.inputs[r->staged];
    if (in->type != WIRE_I_REPLY) {
        int code = (int)wire_get_u32(in);
        const char *why = wire_get_str(in, 300);
        return err_user(e, code == ENOSPC ? "disk_full" : "bad_path", "file for %.150s: %s",
                        input->path, why);
    }
    AUTO_FD fd = wire_take_fd(in);
    if (fd < 0)
        return err_set(e, EPROTO, "init opened no file");
    if (copy(input->fd, fd, e) < 0)
        return err_user(e, e->code == ENOSPC ? "disk_full" : "copy_failed", "file for %.150s: %s",
                        input->path, strerror(e->code));
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "fstat");
    input->size = (uint64_t)st.st_size;
    return 0;
}

void run_stage_answer(struct run *r, enum asked what, struct wire_in *in) {
    struct err e;
    if (what == ASKED_INPUT) {
        if (take_input(r, in, &e) < 0) {
            run_fail(r, &e);
            return;
        }
        if (++r->staged < r->req.ninputs)
            ask_input(r);
    } else if (in->type != WIRE_I_REPLY) {
        (void)wire_get_u32(in);
        err_set(&e, EIO, "init: %s", wire_get_str(in, 300));
        run_fail(r, &e);
        return;
    }
    if (r->sandbox && r->sandbox->nasked == 0)
        run_start(r);
}
