/* See live_rig.h. */

#include "live_rig.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/rope.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/live/command.h"
#include "engine/live/lives.h"
#include "engine/process/live_state.h"
#include "rig_beside.h"

#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rig rig;
static struct live *live;
static struct kernel *kernel;
static struct command *command;
static struct live_watcher live_watcher;
static struct kernel_watcher kernel_watcher;
static char live_id_kept[ID_MAX];

/* An execution or a command that a script named. */
static struct named {
    char name[16];
    struct cell *cell;
    char id[ID_MAX]; /* of the cell: another server knows it by that */
} named[16];
static unsigned nnamed;

static struct named *name_of(const char *name) {
    for (unsigned i = 0; i < nnamed; i++) {
        if (strcmp(named[i].name, name) == 0)
            return &named[i];
    }
    struct named *new = &named[nnamed++];
    *new = (struct named){0};
    snprintf(new->name, sizeof new->name, "%s", name);
    return new;
}

/* ---- what is told ---- */

static void on_end(struct live_watcher *w, const struct err *why) {
    (void)w;
    const char *text = why->text;
    rig_say(&rig, "ended:%s",
            strstr(text, "ttl")           ? "ttl"
            : strstr(text, "idle")        ? "idle"
            : strstr(text, "was killed")  ? "lost"
            : strstr(text, "by a client") ? "asked"
                                          : text);
    live = NULL;
    kernel = NULL;
}

static void on_news(struct kernel_watcher *w, enum kernel_news news) {
    static const char *const words[] = {"died", "back", "dead", "forgotten"};
    (void)w;
    rig_say(&rig, "%s", words[news]);
}

static void take_kernel(struct kernel *k) {
    kernel = k;
    kernel_unwatch(&kernel_watcher);
    kernel_watcher = (struct kernel_watcher){.on_news = on_news};
    kernel_watch(k, &kernel_watcher);
}

static void take_live(struct live *l) {
    struct err e;
    live = l;
    snprintf(live_id_kept, sizeof live_id_kept, "%s", live_id(l));
    live_watcher = (struct live_watcher){.on_end = on_end};
    live_watch(l, &live_watcher);
    take_kernel(kernel_find(l, NULL, &e));
}

static void on_live(void *arg, struct live *l, const struct err *why) {
    (void)arg;
    if (why)
        rig_say(&rig, "fail:%s", why->kind);
    else
        rig_say(&rig, "ready");
    live = NULL;
    if (!why)
        take_live(l);
}

static void on_kernel(void *arg, struct kernel *k, const struct err *why) {
    (void)arg, (void)k;
    if (why)
        rig_say(&rig, "kernel:fail:%s", why->kind);
    else
        rig_say(&rig, "kernel:ready");
}

static void on_cell_event(void *arg, const char *type, const struct buf *json) {
    const struct named *n = arg;
    (void)json;
    rig_say(&rig, "%s:%s", n->name, type);
}

/* The result is written as the API has it, whatever a script is about. */
static void on_cell_done(void *arg, struct cell *c, const struct err *why) {
    static const char *const limits[] = {"",      "/memory", "/time",   "/cpu",
                                         "/pids", "/disk",   "/output", "/network"};
    struct named *n = arg;
    n->cell = NULL;
    if (why) {
        rig_say(&rig, "%s:fail:%s", n->name, why->kind);
        return;
    }
    AUTO_ROPE result = ROPE_INIT;
    AUTO_BUF end = BUF_INIT;
    cell_end_json(c, &end);
    cell_result(c, &result);
    assert_true(end.len > 0 && result.bytes > 0);
    rig_say(&rig, "%s:done:%s%s%s", n->name, cell_receipt(c).status, limits[c->outcome.limit],
            c->outcome.denied.n ? "-denied" : "");
}

static void on_command_done(void *arg, struct command *c) {
    const struct named *n = arg;
    AUTO_BUF json = BUF_INIT;
    command_json(c, &json);
    assert_true(json.len > 0);
    rig_say(&rig, "%s:done:%s", n->name, command_status(c));
}

static void on_heir_cell(void *arg, struct live *l, struct cell *c, uint64_t number) {
    (void)arg, (void)l, (void)number;
    for (unsigned i = 0; i < nnamed; i++) {
        struct named *n = &named[i];
        if (strcmp(n->id, cell_id(c)) != 0)
            continue;
        n->cell = c;
        rig_say(&rig, "again:%s", n->name);
        cell_call(c, &(struct cell_callbacks){
                         .arg = n, .on_event = on_cell_event, .on_done = on_cell_done});
    }
}

static void on_heir_command(void *arg, struct live *l, struct command *c, uint64_t number) {
    (void)arg, (void)l, (void)number;
    struct named *n = name_of("c");
    command = c;
    rig_say(&rig, "again:%s", n->name);
    command_call(c, &(struct command_callbacks){
                        .arg = n, .on_event = on_cell_event, .on_done = on_command_done});
}

/* ---- words ---- */

/* Directories of the host, as they were judged to be allowed. */
static void add_binds(struct live_request *q, unsigned n) {
    q->binds = xcalloc(n, sizeof *q->binds);
    for (q->nbinds = 0; q->nbinds < n; q->nbinds++)
        q->binds[q->nbinds] = (struct host_bind){
            .allowed = xstrdup("/srv"), .below = xstrdup("a"), .path = xstrdup("in")};
}

static void ask_live(struct rig *r, unsigned nbinds) {
    struct live_request q = {
        .tenant = xstrdup("a"), .profile = xstrdup("base"), .metadata = xstrdup("{}")};
    if (nbinds)
        add_binds(&q, nbinds);
    struct live *made;
    struct err e;
    assert_int_equal(live_new(r->engine, &q, on_live, NULL, &made, &e), 0);
    live = made;
}

static void take_last_kernel(void) {
    struct kernel *last = kernel_next(live, NULL);
    while (kernel_next(live, last))
        last = kernel_next(live, last);
    take_kernel(last);
}

static void ask_kernel(void) {
    struct err e;
    assert_int_equal(kernel_new(live, &(struct kernel_request){0}, on_kernel, NULL, &e), 0);
    take_last_kernel();
}

static void ask_cell(const char *name, uint32_t timeout_ms) {
    struct named *n = name_of(name);
    struct cell_request q = {.code = json_string("pass"), .allow_stdin = true};
    q.limits.timeout_ms = timeout_ms;
    const struct cell_callbacks cb = {.arg = n, .on_event = on_cell_event, .on_done = on_cell_done};
    struct err e;
    if (cell_new(kernel, &q, &cb, &n->cell, &e) < 0) {
        rig_say(&rig, "%s:%s", name, e.kind);
        cell_request_done(&q);
        return;
    }
    snprintf(n->id, sizeof n->id, "%s", cell_id(n->cell));
}

static void on_nameless(void *arg, struct cell *c, const struct err *why) {
    (void)arg, (void)c, (void)why;
}

static void on_nameless_event(void *arg, const char *type, const struct buf *json) {
    (void)arg, (void)type, (void)json;
}

static void ask_cells(int n) {
    const struct cell_callbacks cb = {.on_event = on_nameless_event, .on_done = on_nameless};
    for (; n > 0; n--) {
        struct cell_request q = {.code = json_string("pass")};
        struct cell *made;
        struct err e;
        assert_int_equal(cell_new(kernel, &q, &cb, &made, &e), 0);
    }
}

/* `text` about the cell at hand; in a file, or with spaces that make it long. */
static void ask_command(const char *name) {
    struct named *n = name_of(name);
    struct command_request q = {.argv = xcalloc(2, sizeof *q.argv),
                                .shown = xstrdup("true"),
                                .cwd = xstrdup(""),
                                .timeout_ms = 60000};
    const struct command_callbacks cb = {
        .arg = n, .on_event = on_cell_event, .on_done = on_command_done};
    struct err e;
    q.argv[0] = xstrdup("true");
    assert_int_equal(command_new(live, &q, &cb, &command, &e), 0);
}

static void find(struct rig *r) {
    struct err e;
    if (live_find(r->engine, "a", live_id_kept, &e))
        rig_say(r, "found");
    else
        rig_say(r, "%s", e.kind);
}

static void answer(struct rig *r, const char *value) {
    json_auto_t *text = json_string(value);
    struct err e;
    if (kernel_stdin(kernel, text, &e) < 0)
        rig_say(r, "%s", e.kind);
}

static void pass(struct rig *r, const char *what) {
    if (strcmp(what, "life") == 0)
        rig_fire(r, &live->timer);
    else if (strcmp(what, "cell") == 0)
        rig_fire(r, &kernel->running->timer);
    else if (strcmp(what, "look") == 0)
        rig_fire(r, &kernel->running->cpu_limit.timer);
    else if (strcmp(what, "retry") == 0)
        rig_fire(r, &kernel->retry);
    else if (strcmp(what, "command") == 0)
        rig_fire(r, &command->timer);
    else if (strcmp(what, "rest") == 0) {
        rig_say(r, "rest");
        rig_fire(r, &live->rest.timer);
    } else
        fail_msg("nothing is due: %s", what);
}

static void set_up(struct rig *r) {
    lives_init(r->engine, -1);
    r->engine->lives->heir = (struct live_heir){.cell = on_heir_cell, .command = on_heir_command};
}

static void die(struct rig *r) {
    const struct config c = rig_config();
    struct err e;
    live_write_all(r->engine);
    live = NULL;
    kernel = NULL;
    command = NULL;
    rig_restart(r, &c);
    set_up(r);
    rig_settle(r);
    struct live *l = live_find(r->engine, "a", live_id_kept, &e);
    if (l)
        take_live(l);
}

static bool on_live_word(struct rig *r, const char *word) {
    struct err e;
    if (strcmp(word, "live") == 0)
        ask_live(r, 0);
    else if (strcmp(word, "live-binds") == 0)
        ask_live(r, 2);
    else if (strcmp(word, "cancel") == 0)
        live_cancel(live);
    else if (strcmp(word, "end") == 0)
        live_end(live, "it was ended by a client", NULL, NULL);
    else if (strcmp(word, "pause") == 0 || strcmp(word, "thaw") == 0)
        assert_int_equal(live_pause(live, word[0] == 'p', &e), 0);
    else if (strcmp(word, "hold") == 0)
        live_hold(live);
    else if (strcmp(word, "release") == 0)
        live_release(live);
    else if (strcmp(word, "find") == 0)
        find(r);
    else if (strcmp(word, "death") == 0)
        die(r);
    else
        return false;
    return true;
}

static bool on_kernel_word(struct rig *r, const char *word, const char *value) {
    struct err e;
    if (strcmp(word, "kernel") == 0)
        ask_kernel();
    else if (strcmp(word, "default") == 0)
        take_kernel(kernel_find(live, NULL, &e));
    else if (strcmp(word, "restart-kernel") == 0)
        kernel_restart(kernel, on_kernel, NULL);
    else if (strcmp(word, "delete-kernel") == 0 && kernel_delete(kernel, &e) < 0)
        rig_say(r, "%s", e.kind);
    else if (strcmp(word, "delete-kernel") == 0)
        return true;
    else if (strcmp(word, "interrupt") == 0)
        kernel_interrupt(kernel);
    else if (strcmp(word, "answer") == 0)
        answer(r, value);
    else
        return false;
    return true;
}

static bool goes_on(void) {
    return live && live->hearings;
}

static bool on_word(struct rig *r, const char *word, const char *value) {
    struct err e;
    if (strcmp(word, "cell") == 0)
        ask_cell(value, 0);
    else if (strcmp(word, "brief") == 0)
        ask_cell(value, 1000);
    else if (strcmp(word, "cells") == 0)
        ask_cells(atoi(value));
    else if (strcmp(word, "drop") == 0)
        cell_interrupt(name_of(value)->cell);
    else if (strcmp(word, "command") == 0)
        ask_command(value);
    else if (strcmp(word, "signal") == 0)
        assert_int_equal(command_signal(command, atoi(value), &e), 0);
    else if (strcmp(word, "time") == 0)
        pass(r, value);
    else
        return on_live_word(r, word) || on_kernel_word(r, word, value) ||
               rig_beside_word(r, word, value, goes_on);
    return true;
}

void live_rig_play(const struct rig_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct config c = rig_config();
        nnamed = 0;
        live = NULL;
        kernel_watcher = (struct kernel_watcher){0};
        rig_init(&rig, &c);
        set_up(&rig);
        rig.profile = 1;
        rig.word = on_word;
        rig_play(&rig, &cases[i]);
        rig_beside_end(&rig);
        rig_done(&rig);
    }
}
