/* An execution in a live kernel: what it prints and shows, how it ends.
 *
 * The kernel process is hostile, so its word counts only about itself: the time, the limits and the
 * end are ours. A time that is up is an interrupt first; a cell that goes on for the grace period
 * after that is killed with its kernel. */

#include "engine/live/internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/core/changes.h"
#include "engine/live/said.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUTS_MAX  (32u << 20) /* bytes of results and displays */
#define CPU_CHECK_NS 20000000u
#define MAX_FILES    1000
#define MAX_DEPTH    32

void cell_request_done(struct cell_request *q) {
    json_decref(q->code);
    free(q->env);
    free(q->formats);
    json_decref(q->stdin_text);
    free(q->extra);
    free(q->tag);
    *q = (struct cell_request){0};
}

static void free_output(struct cell_output *o) {
    buf_done(&o->shown);
    free(o->display_id);
}

static size_t output_size(const struct cell_output *o) {
    return o->shown.len + sizeof *o + 64 + (o->display_id ? strlen(o->display_id) : 0);
}

static void free_outputs(struct cell *c) {
    for (unsigned i = 0; i < c->noutputs; i++) {
        free_output(&c->outputs[i]);
    }
    free(c->outputs);
    c->outputs = NULL;
    c->noutputs = 0;
    c->outputs_bytes = 0;
}

static void free_now(struct deferred *d) {
    struct cell *c = d->arg;
    cell_request_done(&c->req);
    free_outputs(c);
    buf_done(&c->text[0]);
    buf_done(&c->text[1]);
    free(c->error);
    free(c->files);
    free(c);
}

const char *cell_id(const struct cell *c) {
    return c->id;
}

const char *cell_tag(const struct cell *c) {
    return c->req.tag;
}

const char *cell_kernel(const struct cell *c) {
    return c->kernel_id;
}

static void emit(struct cell *c, const char *type, const struct buf *json) {
    live_said(c->kernel->live);
    if (c->cb.on_event)
        c->cb.on_event(c->cb.arg, type, json);
}

/* One that is to end is not held any more: what its slow reader has no room for is dropped. */
static bool has_room(struct cell *c) {
    bool room = !c->held || c->stop == STOP_NONE;
    c->outputs_cut |= !room;
    return room;
}

/* ---- the end ---- */

static void stop_clocks(struct cell *c) {
    struct loop *l = c->kernel->live->engine->loop;
    loop_timer_stop(l, &c->timer);
    loop_timer_stop(l, &c->cpu_timer);
}

/* From here on what is printed is the next one's. */
static void take_text(struct cell *c) {
    for (int i = 0; i < 2; i++) {
        struct output *o = &c->kernel->out[i];
        c->text[i] = o->kept;
        c->total[i] = o->total;
        c->full |= output_truncated(o);
        c->cut[i] = c->resumed || output_truncated(o);
        o->kept = (struct buf)BUF_INIT;
        output_reset(o, LATE_MAX);
    }
}

static void close_cell(struct cell *c, const struct err *why) {
    struct kernel *k = c->kernel;
    struct live *l = k->live;
    bool ran = k->running == c;
    stop_clocks(c);
    live_unask(l, c);
    if (ran && !c->finishing)
        take_text(c);
    c->state = CELL_DONE;
    if (ran)
        kernel_ran(k, c->stop != STOP_NONE || c->was_interrupted);
    live_said(l); /* whoever hears of it tells the end */
    if (c->cb.on_done)
        c->cb.on_done(c->cb.arg, c, why);
    c->kernel = NULL;
    live_release(l);
    loop_defer(l->engine->loop, &c->free_later);
}

void cell_fail(struct cell *c, const struct err *why) {
    if (c->state != CELL_DONE)
        close_cell(c, why);
}

/* ---- what it prints and shows ---- */

static void emit_text(struct cell *c, int stream, const struct buf *text) {
    AUTO_BUF json = BUF_INIT;
    if (text->len == 0 || !has_room(c))
        return;
    utf8_stream_json(text, &json);
    emit(c, stream == 1 ? "stdout" : "stderr", &json);
}

/* clear_output(wait=True) comes true when there is something new. */
static void clear_shown(struct cell *c) {
    c->clear_next = false;
    free_outputs(c);
    buf_clear(&c->kernel->out[0].kept);
    buf_clear(&c->kernel->out[1].kept);
}

void cell_print(struct cell *c, int stream, const void *data, size_t len) {
    AUTO_BUF text = BUF_INIT;
    if (c->clear_next) {
        clear_shown(c);
        buf_add(&c->kernel->out[stream - 1].kept, data, len);
    }
    utf8_stream_add(&c->utf8[stream - 1], data, len, &text);
    emit_text(c, stream, &text);
}

/* What came in part of a character, at the end. */
static void flush_tails(struct cell *c) {
    for (int i = 0; i < 2; i++) {
        AUTO_BUF text = BUF_INIT;
        utf8_stream_end(&c->utf8[i], &text);
        emit_text(c, i + 1, &text);
    }
}

static struct cell_output *find_display(struct cell *c, const char *id) {
    for (unsigned i = 0; id && i < c->noutputs; i++) {
        if (c->outputs[i].display_id && strcmp(c->outputs[i].display_id, id) == 0)
            return &c->outputs[i];
    }
    return NULL;
}

/* Takes `o`. */
static void keep_output(struct cell *c, struct cell_output *o, bool update) {
    struct cell_output *old = update ? find_display(c, o->display_id) : NULL;
    size_t size = c->outputs_bytes + output_size(o) - (old ? output_size(old) : 0);
    bool fits = size <= OUTPUTS_MAX;
    c->outputs_cut |= !fits;
    if (!fits || (update && !old)) { /* of an earlier execution: whoever follows has the event */
        free_output(o);
        return;
    }
    c->outputs_bytes = size;
    if (old) {
        o->is_main = old->is_main;
        free_output(old);
        *old = *o;
        return;
    }
    if ((c->noutputs & (c->noutputs - 1)) == 0) /* a power of two: the room is used up */
        c->outputs = xrealloc(c->outputs, (c->noutputs ? 2 * c->noutputs : 1) * sizeof *c->outputs);
    c->outputs[c->noutputs++] = *o;
}

/* Takes the text: the event is what is kept, with its end. */
static void on_shown(struct cell *c, struct said *s, bool is_main) {
    const char *id = said_str(s, "display_id");
    struct cell_output o = {.shown = s->text,
                            .plain_at = s->plain_at,
                            .plain_len = s->plain_len,
                            .display_id = id ? xstrdup(id) : NULL,
                            .is_main = is_main};
    bool update = said_true(s, "update");
    size_t open = o.shown.len;
    s->text = (struct buf)BUF_INIT;
    if (c->clear_next)
        clear_shown(c);
    struct jw j = {.to = &o.shown, .comma = true};
    if (is_main) {
        jw_key_uint(&j, "execution_count", c->execution_count);
        if (id) { /* as Jupyter has it */
            jw_key(&j, "transient");
            jw_object(&j);
            jw_key_str(&j, "display_id", id);
            jw_object_end(&j);
        }
    } else {
        jw_key_str(&j, "display_id", o.display_id);
        jw_key_bool(&j, "update", update);
    }
    jw_object_end(&j);
    c->outputs_cut |= s->cut || said_true(s, "cut");
    if (has_room(c))
        emit(c, is_main ? "result" : "display", &o.shown);
    o.shown.len = open;
    keep_output(c, &o, update);
}

static void on_clear(struct cell *c, struct said *s) {
    AUTO_BUF json = BUF_INIT;
    bool wait = said_true(s, "wait");
    if (wait)
        c->clear_next = true;
    else
        clear_shown(c);
    buf_addf(&json, "{\"wait\":%s}", wait ? "true" : "false");
    if (has_room(c))
        emit(c, "clear", &json);
}

/* Takes `json`. */
static void set_error(struct cell *c, struct buf *json) {
    emit(c, "error", json);
    free(c->error);
    c->error = buf_take(json);
}

/* SECURITY: an execution's error is always kept, so there is one. */
static void on_error(struct cell *c, struct said *s) {
    if (!c->error)
        set_error(c, &s->text);
}

/* The lines that came with the request answer it, one each or all at once, then their end. */
static void answer_from_request(struct cell *c, bool all) {
    const char *rest = json_string_value(c->req.stdin_text) + c->stdin_at;
    size_t left = json_string_length(c->req.stdin_text) - c->stdin_at;
    struct err e;
    c->waits_for_input = true;
    if (left == 0) {
        kernel_input(c->kernel, NULL, &e);
        return;
    }
    const char *end = all ? NULL : memchr(rest, '\n', left);
    struct kernel_text line = {c->req.stdin_text, c->stdin_at, end ? (size_t)(end - rest) : left};
    c->stdin_at += line.len + (end != NULL);
    kernel_input(c->kernel, &line, &e);
}

/* A debugger takes an interrupt as its own and asks for the next command, as it would anywhere: the
 * cell goes on then, with what is left of its time. One whose time is up gets no answers any more,
 * which ends a debugger. */
static bool go_on_after_interrupt(struct cell *c) {
    struct err e;
    if (c->stop != STOP_CLIENT) {
        c->waits_for_input = true;
        kernel_input(c->kernel, NULL, &e);
        return false;
    }
    c->stop = STOP_NONE;
    c->asked_twice = false;
    c->was_interrupted = true;
    if (!c->kernel->live->paused)
        loop_timer(c->kernel->live->engine->loop, &c->timer, c->ends_ns);
    return true;
}

static void on_input(struct cell *c, struct said *s) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (c->stop != STOP_NONE && !go_on_after_interrupt(c))
        return;
    if (c->req.stdin_text) {
        answer_from_request(c, said_true(s, "rest"));
        return;
    }
    const char *prompt = said_str(s, "prompt");
    c->waits_for_input = true;
    live_changed(c->kernel->live);
    jw_object(&j);
    jw_key_str(&j, "prompt", prompt ? prompt : "");
    jw_key_bool(&j, "password", said_true(s, "password"));
    jw_object_end(&j);
    if (has_room(c))
        emit(c, "input", &json);
}

/* For those who asked for it: what it is, they know. */
static void on_extra(struct cell *c, struct said *s) {
    if (c->req.extra && has_room(c))
        emit(c, said_str(s, "ev"), &s->text);
}

/* ---- how it ended ---- */

static void take_usage(struct cell *c) {
    struct live *l = c->kernel->live;
    struct cgroup_usage u = group_usage(&c->kernel->process);
    uint64_t all = cgroup_fds_memory_peak(l->sandbox->cgroup);
    c->cpu_us = u.cpu_us > c->cpu_base_us ? u.cpu_us - c->cpu_base_us : 0;
    l->cpu_told_us += c->cpu_us;
    c->memory_peak = u.memory_peak;
    if (all > l->memory_peak)
        l->memory_peak = all;
    if (c->limit == LIMIT_NONE && u.out_of_memory)
        c->limit = LIMIT_MEMORY;
    else if (c->limit == LIMIT_NONE && u.out_of_pids)
        c->limit = LIMIT_PIDS;
    else if (c->limit == LIMIT_NONE && sandbox_is_full(l->sandbox))
        c->limit = LIMIT_DISK;
    network_attempts_end(&c->network, l, &c->denied);
}

static void put_file(struct jw *j, const struct change *f) {
    jw_object(j);
    jw_key_str(j, "path", f->path);
    jw_key_str(j, "kind", "file");
    jw_key_null(j, "file_id");
    jw_key_uint(j, "size_bytes", f->size);
    jw_object_end(j);
}

static void take_files(struct cell *c, struct wire_in *in) {
    struct changes list = {0};
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    if (!in || sandbox_changes(in, MAX_FILES, &list, &c->files_cut) < 0)
        return;
    for (unsigned i = 0; i < list.n; i++)
        put_file(&j, &list.items[i]);
    changes_done(&list);
    c->files = buf_take(&json);
}

static void on_changes(void *arg, struct wire_in *in) {
    struct cell *c = arg;
    take_files(c, in);
    close_cell(c, NULL);
}

/* All is known but the files that it made. */
static void finish(struct cell *c) {
    struct wire_out o;
    c->ended_ns = now_ns();
    c->finishing = true;
    c->waits_for_input = false;
    stop_clocks(c);
    flush_tails(c);
    take_text(c);
    take_usage(c);
    wire_begin(&o, WIRE_I_CHANGES);
    wire_put_u32(&o, MAX_FILES);
    wire_put_u32(&o, MAX_DEPTH);
    wire_put_u64(&o, c->changed_since_ns);
    bool ask = !c->req.silent || c->stop != STOP_NONE ||
               c->was_interrupted; /* a signal is answered before that */
    if (!ask || !live_ask(c->kernel->live, &o, on_changes, c))
        close_cell(c, NULL);
}

static enum cell_status status_of(const struct cell *c, const char *word) {
    if (c->stop == STOP_TIMEOUT)
        return CELL_TIMEOUT;
    if (word && strcmp(word, "ok") == 0)
        return CELL_OK;
    return word && strcmp(word, "interrupted") == 0 ? CELL_INTERRUPTED : CELL_ERROR;
}

/* The code has one of its own when it called sys.exit(). */
static int exit_code_of(const struct cell *c, const json_t *own) {
    json_int_t code = json_integer_value(own);
    if (c->status == CELL_ERROR && json_is_integer(own) && code >= 0 && code <= 255)
        return (int)code;
    return c->status == CELL_OK ? 0 : c->status == CELL_INTERRUPTED ? 128 + SIGINT : 1;
}

static void on_done(struct cell *c, struct said *s) {
    const char *word = said_str(s, "status");
    const json_t *count = json_object_get(s->rest, "execution_count");
    c->status = status_of(c, word);
    if (json_is_integer(count) && json_integer_value(count) >= 0)
        c->execution_count = (uint64_t)json_integer_value(count);
    if (!c->req.silent && !c->req.no_history)
        c->kernel->execution_count = c->execution_count;
    c->exit_code = exit_code_of(c, json_object_get(s->rest, "exit_code"));
    if (said_true(s, "leaves")) /* exit(): the next one gets another kernel */
        kernel_kill(c->kernel);
    finish(c);
}

static const struct {
    const char *name;
    void (*fn)(struct cell *c, struct said *s);
} events[] = {
    {"clear", on_clear}, {"error", on_error},   {"input", on_input},       {"done", on_done},
    {"comm", on_extra},  {"payload", on_extra}, {"expressions", on_extra},
};

void cell_event(struct cell *c, const char *name, struct said *s) {
    const json_t *count = json_object_get(s->rest, "execution_count");
    if (c->finishing)
        return;
    if (strcmp(name, "result") == 0 && json_is_integer(count) && json_integer_value(count) >= 0)
        c->execution_count = (uint64_t)json_integer_value(count);
    if (strcmp(name, "result") == 0 || strcmp(name, "display") == 0)
        on_shown(c, s, name[0] == 'r');
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strcmp(events[i].name, name) == 0) {
            events[i].fn(c, s);
            return;
        }
    }
}

/* It has a limit of its own and was far from it. */
static bool ended_by_others(const struct cell *c) {
    const struct process *p = &c->kernel->process;
    uint64_t most = config_group_bytes(&p->limits);
    return p->limits.memory_mb && group_peak(p) < most - most / 8;
}

/* Why the process is dead, for the one who reads the result. */
static void explain(struct cell *c, const char *why, char *out, size_t cap) {
    const struct config_limits *own = &c->kernel->process.limits;
    if (c->stop == STOP_TIMEOUT)
        snprintf(out, cap, "it ran longer than %u ms and ignored the interrupt",
                 c->req.limits.timeout_ms);
    else if (c->limit == LIMIT_CPU)
        snprintf(out, cap, "it used more than %u s of CPU time", c->req.limits.cpu_seconds);
    else if (c->status == CELL_MEMORY && ended_by_others(c))
        snprintf(out, cap, "all kernels of the sandbox together needed more than %u MB of memory",
                 c->kernel->live->req.limits.memory_mb);
    else if (c->status == CELL_MEMORY)
        snprintf(out, cap, "it needed more than %u MB of memory",
                 own->memory_mb ? own->memory_mb : c->kernel->live->req.limits.memory_mb);
    else if (c->stop == STOP_CLIENT)
        snprintf(out, cap, "it ignored the interrupt");
    else if (c->stop == STOP_KERNEL)
        snprintf(out, cap, "somebody restarted or deleted it");
    else if (why)
        snprintf(out, cap, "%s", why);
    else if (c->signal > 0)
        snprintf(out, cap, "it died of signal %d (%s)", c->signal, strsignal(c->signal));
    else
        snprintf(out, cap, "it left with status %d", c->exit_code);
}

void cell_killed(struct cell *c, int status, const char *why) {
    char reason[240], text[300];
    if (c->finishing)
        return; /* it had ended before */
    if (WIFSIGNALED(status)) {
        c->signal = WTERMSIG(status);
        c->exit_code = 128 + c->signal;
    } else {
        c->exit_code = WEXITSTATUS(status);
    }
    bool memory = c->limit == LIMIT_MEMORY || group_ran_out_of_memory(&c->kernel->process);
    if (c->stop == STOP_CPU)
        c->limit = LIMIT_CPU;
    else if (c->stop == STOP_TIMEOUT)
        c->limit = LIMIT_TIME;
    c->status = c->stop == STOP_TIMEOUT                                  ? CELL_TIMEOUT
                : c->stop == STOP_NONE && memory && c->signal == SIGKILL ? CELL_MEMORY
                                                                         : CELL_KILLED;
    explain(c, why, reason, sizeof reason);
    snprintf(text, sizeof text, "the kernel died: %s; its variables are lost", reason);
    struct buf json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "name", "KernelDied");
    jw_key_str(&j, "value", text);
    jw_key(&j, "traceback");
    jw_array(&j);
    jw_array_end(&j);
    jw_object_end(&j);
    set_error(c, &json);
    finish(c);
}

void cell_limit(struct cell *c, enum limit_kind kind) {
    if (c->limit == LIMIT_NONE)
        c->limit = kind;
}

/* ---- its time ---- */

static uint64_t grace_ns(const struct cell *c) {
    return (uint64_t)c->kernel->live->engine->config.live_grace_ms * 1000000u;
}

void cell_stop(struct cell *c, enum cell_stop why) {
    struct live *l = c->kernel->live;
    if (c->finishing)
        return;
    if (c->stop == STOP_NONE) {
        c->stop = why;
        if (why == STOP_TIMEOUT)
            c->limit = LIMIT_TIME;
        else if (why == STOP_CPU)
            c->limit = LIMIT_CPU;
        c->left_ns = grace_ns(c) - grace_ns(c) / 10;
        if (!l->paused)
            loop_timer(l->engine->loop, &c->timer, now_ns() + c->left_ns);
        kernel_hold(c->kernel, false);
    }
    process_signal(&c->kernel->process, SIGINT, SIGNAL_PROCESS);
}

void cell_interrupt(struct cell *c) {
    struct err e;
    if (c->state == CELL_RUNNING) {
        cell_stop(c, STOP_CLIENT);
    } else if (c->state == CELL_QUEUED) {
        kernel_unqueue(c->kernel, c);
        err_user(&e, "interrupted", "interrupted while it waited for its kernel");
        cell_fail(c, &e);
    }
}

static void on_timer(struct timer *t) {
    struct cell *c = t->arg;
    if (c->stop == STOP_NONE) {
        cell_stop(c, STOP_TIMEOUT);
    } else if (!c->asked_twice) { /* Python may sleep over a signal that comes as it falls asleep */
        c->asked_twice = true;
        loop_timer(c->kernel->live->engine->loop, t, now_ns() + grace_ns(c) / 10);
        cell_stop(c, c->stop);
    } else {
        kernel_kill(c->kernel);
    }
}

/* The next look comes when the limit could be reached at the earliest. */
static void on_cpu_timer(struct timer *t) {
    struct cell *c = t->arg;
    const struct live *l = c->kernel->live;
    uint64_t limit_us = (uint64_t)c->req.limits.cpu_seconds * 1000000u;
    uint64_t now_us = group_cpu_us(&c->kernel->process);
    uint64_t used_us = now_us > c->cpu_base_us ? now_us - c->cpu_base_us : 0;
    if (used_us >= limit_us) {
        cell_stop(c, STOP_CPU);
        return;
    }
    uint32_t percent = l->req.limits.cpus_percent;
    uint64_t wait_ns = (limit_us - used_us) * 1000u * 100u / (percent < 100 ? 100 : percent);
    loop_timer(l->engine->loop, t, now_ns() + (wait_ns < CPU_CHECK_NS ? CPU_CHECK_NS : wait_ns));
}

void cell_pause(struct cell *c, bool pause) {
    struct loop *l = c->kernel->live->engine->loop;
    uint64_t now = now_ns();
    if (pause) {
        c->left_ns = c->timer.place && c->timer.at_ns > now ? c->timer.at_ns - now : 1;
        loop_timer_stop(l, &c->timer);
    } else if (!c->finishing) {
        loop_timer(l, &c->timer, now + c->left_ns);
        if (c->stop == STOP_NONE)
            c->ends_ns = now + c->left_ns;
    }
}

void cell_hold(struct cell *c, bool hold) {
    if (c->state != CELL_RUNNING || c->finishing)
        return;
    c->held = hold;
    kernel_hold(c->kernel, hold && c->stop == STOP_NONE);
}

/* ---- the beginning ---- */

static void settle(uint32_t *v, uint32_t fallback) {
    if (*v == 0)
        *v = fallback;
}

/* What a cell may ask for: the maximum, or what its sandbox got of more than that. */
static uint64_t bound(uint64_t most, uint64_t own) {
    return most > own ? most : own;
}

static int settle_limits(struct cell_request *q, const struct live *l, struct err *e) {
    struct config_limits *v = &q->limits;
    const struct config_limits *most = &l->engine->config.maxima, *own = &l->req.limits;
    settle(&v->timeout_ms, own->timeout_ms);
    settle(&v->cpu_seconds, own->cpu_seconds);
    if (v->output_bytes == 0)
        v->output_bytes = own->output_bytes;
    if (q->own_bounds)
        return 0;
    uint64_t timeout_ms = bound(most->timeout_ms, own->timeout_ms);
    uint64_t cpu_seconds = bound(most->cpu_seconds, own->cpu_seconds);
    uint64_t output_bytes = bound(most->output_bytes, own->output_bytes);
    if (most->timeout_ms && v->timeout_ms > timeout_ms)
        return err_user(e, "limit_too_high",
                        "timeout of %u ms is above this engine's maximum of %" PRIu64 " ms",
                        v->timeout_ms, timeout_ms);
    if (most->cpu_seconds && v->cpu_seconds > cpu_seconds)
        return err_user(e, "limit_too_high",
                        "cpu of %u seconds is above this engine's maximum of %" PRIu64 " seconds",
                        v->cpu_seconds, cpu_seconds);
    if (v->output_bytes > output_bytes)
        return err_user(e, "limit_too_high",
                        "output of %" PRIu64 " bytes is above the maximum of %" PRIu64,
                        v->output_bytes, output_bytes);
    return 0;
}

static struct cell *make(struct kernel *k, struct cell_request *q) {
    struct cell *c = xcalloc(1, sizeof *c);
    c->kernel = k;
    c->req = *q;
    *q = (struct cell_request){0};
    c->born_ns = now_ns();
    c->profile = live_profile(k->live);
    c->exit_code = c->signal = -1;
    c->text[0] = c->text[1] = (struct buf)BUF_INIT;
    c->timer = (struct timer){.fn = on_timer, .arg = c};
    c->cpu_timer = (struct timer){.fn = on_cpu_timer, .arg = c};
    c->free_later = (struct deferred){.fn = free_now, .arg = c};
    memcpy(c->kernel_id, k->id, sizeof c->kernel_id);
    live_hold(k->live);
    return c;
}

struct cell *cell_resume(struct kernel *k, struct cell_request *q) {
    struct cell *c = make(k, q);
    c->state = CELL_RUNNING;
    c->resumed = true;
    return c;
}

void cell_call(struct cell *c, const struct cell_callbacks *cb) {
    AUTO_BUF json = BUF_INIT;
    c->cb = *cb;
    buf_addf(&json, "{\"id\":\"%s\",\"kernel_id\":\"%s\",\"resumed\":true}", c->id, c->kernel_id);
    emit(c, "start", &json);
}

void cell_lost(struct cell *c) {
    struct err e;
    err_user(&e, "sandbox_lost", "its result was lost when the server was restarted");
    if (!c->finishing) /* else its end was heard */
        cell_fail(c, &e);
}

struct cell *cell_make(struct kernel *k, struct cell_request *q, const struct cell_callbacks *cb,
                       struct err *e) {
    if (settle_limits(q, k->live, e) < 0)
        return NULL;
    struct cell *c = make(k, q);
    c->cb = *cb;
    id_make("exe_", c->id, sizeof c->id);
    return c;
}

static void send_code(struct cell *c) {
    AUTO_BUF head = BUF_INIT;
    AUTO_BUF tail = BUF_INIT;
    struct jw j = JW_INIT(&head);
    jw_object(&j);
    jw_key_str(&j, "op", c->req.op ? c->req.op : "execute");
    jw_key_str(&j, "id", c->id);
    jw_key(&j, "code");
    j = (struct jw){.to = &tail, .comma = true};
    jw_key_bool(&j, "silent", c->req.silent);
    jw_key_bool(&j, "store_history", !c->req.no_history);
    jw_key_bool(&j, "allow_stdin", c->req.allow_stdin || c->req.stdin_text);
    jw_key_bool(&j, "has_stdin", c->req.stdin_text);
    if (c->req.env) {
        jw_key(&j, "env");
        jw_raw(&j, c->req.env, strlen(c->req.env));
    }
    if (c->req.formats) {
        jw_key(&j, "formats");
        jw_raw(&j, c->req.formats, strlen(c->req.formats));
    }
    if (c->req.extra)
        buf_addf(&tail, ",%s", c->req.extra);
    jw_object_end(&j);
    const struct kernel_text code = {c->req.code, 0, json_string_length(c->req.code)};
    kernel_do_text(c->kernel, &head, &code, &tail);
}

/* What was printed since the last execution belongs to nobody else. */
static void take_late(struct cell *c) {
    struct kernel *k = c->kernel;
    for (int i = 0; i < 2; i++) {
        struct buf late = k->out[i].kept;
        uint64_t lost = k->out[i].total - late.len;
        k->out[i].kept = (struct buf)BUF_INIT;
        output_reset(&k->out[i], c->req.limits.output_bytes);
        if (lost)
            buf_addf(&late, "\ncloche: %" PRIu64 " bytes more were printed between two cells\n",
                     lost);
        if (late.len && late.len <= k->out[i].cap) {
            buf_add(&k->out[i].kept, late.data, late.len);
            k->out[i].total = late.len;
            cell_print(c, i + 1, late.data, late.len);
        }
        buf_done(&late);
    }
}

void cell_begin(struct cell *c) {
    struct kernel *k = c->kernel;
    struct live *l = k->live;
    AUTO_BUF json = BUF_INIT;
    c->state = CELL_RUNNING;
    c->kernel_restarted = k->is_fresh;
    k->is_fresh = false;
    c->execution_count = k->execution_count + 1;
    c->changed_since_ns = file_stamp_ns();
    c->cpu_base_us = group_cpu_us(&k->process);
    network_attempts_begin(&c->network, l);
    group_usage(&k->process); /* what happened before is not ours */
    c->started_ns = now_ns();
    l->executions++;
    l->engine->counts.runs++;
    live_changed(l);
    buf_addf(&json, "{\"id\":\"%s\",\"kernel_id\":\"%s\"}", c->id, k->id);
    emit(c, "start", &json);
    take_late(c);
    c->ends_ns = c->started_ns + (uint64_t)c->req.limits.timeout_ms * 1000000u;
    loop_timer(l->engine->loop, &c->timer, c->ends_ns);
    if (cgroup_fds_there(l->sandbox->cgroup) && c->req.limits.cpu_seconds)
        on_cpu_timer(&c->cpu_timer);
    send_code(c);
}
