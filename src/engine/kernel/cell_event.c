/* See cell_event.h. */

#include "engine/kernel/cell_event.h"

#include "base/json.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/cell_end.h"
#include "engine/kernel/cell_shown.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_control.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/process/live_state.h"
#include "engine/said/said.h"
#include "engine/said/told.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>

static const struct field clear_fields[] = {
    HAS("wait", FIELD_BOOL, .help = "not before there is something new"),
};
const struct schema cell_clear_schema = {SCHEMA("Clear", clear_fields)};

static const struct field input_fields[] = {
    HAS("prompt", FIELD_STRING),
    HAS("password", FIELD_BOOL, .help = "what is typed should not be seen"),
};
const struct schema cell_input_schema = {SCHEMA("Input", input_fields),
                                         .help = "it waits for an answer to input()"};

static void cell_on_clear(struct cell *c, struct said *s) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    bool wait = said_true(s, "wait");
    if (wait)
        c->clear_next = true;
    else
        cell_clear_shown(c);
    jw_object(&j);
    jw_key_bool(&j, "wait", wait);
    jw_object_end(&j);
    if (cell_has_room(c))
        cell_emit(c, "clear", &json);
}

/* SECURITY: an execution's error is always kept, so there is one. */
static void cell_on_error(struct cell *c, struct said *s) {
    if (!c->error)
        cell_set_error(c, &s->text);
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
    struct kernel_text line = {c->req.stdin_text, c->stdin_at, end ? (size_t)(end - rest) : left,
                               .is_answer = true};
    c->stdin_at += line.len + (end != NULL);
    kernel_input(c->kernel, &line, &e);
}

/* A debugger catches an interrupt and asks for the next command, as it would anywhere: the cell
 * then goes on with the rest of its time. A cell whose time is up gets no more answers, which ends
 * a debugger. */
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

static void cell_on_input(struct cell *c, struct said *s) {
    AUTO_BUF json = BUF_INIT;
    if (c->stop != STOP_NONE && !go_on_after_interrupt(c))
        return;
    if (c->req.stdin_text) {
        answer_from_request(c, said_true(s, "rest"));
        return;
    }
    c->waits_for_input = true;
    live_changed_lately(c->kernel->live);
    told_input(said_str(s, "prompt"), said_true(s, "password"), &json);
    if (cell_has_room(c))
        cell_emit(c, "input", &json);
}

/* Passed on as it is to a client that asked for it. */
static void cell_on_extra(struct cell *c, struct said *s) {
    if (c->req.extra.len && cell_has_room(c))
        cell_emit(c, said_str(s, "ev"), &s->text);
}

static enum outcome_status status_of(const struct cell *c, const char *word) {
    if (c->stop == STOP_TIMEOUT)
        return OUTCOME_TIMEOUT;
    if (word && strcmp(word, "ok") == 0)
        return OUTCOME_OK;
    return word && strcmp(word, "interrupted") == 0 ? OUTCOME_INTERRUPTED : OUTCOME_ERROR;
}

/* `own` is what the code gave to sys.exit(). */
static int exit_code_of(const struct cell *c, const json_t *own) {
    json_int_t code = json_integer_value(own);
    if (c->outcome.status == OUTCOME_ERROR && json_is_integer(own) && code >= 0 && code <= 255)
        return (int)code;
    return c->outcome.status == OUTCOME_OK            ? 0
           : c->outcome.status == OUTCOME_INTERRUPTED ? 128 + SIGINT
                                                      : 1;
}

static void cell_on_done(struct cell *c, struct said *s) {
    const char *word = said_str(s, "status");
    const json_t *count = json_object_get(s->rest, "execution_count");
    c->outcome.status = status_of(c, word);
    if (json_is_integer(count) && json_integer_value(count) >= 0)
        c->execution_count = (uint64_t)json_integer_value(count);
    if (!c->req.silent && !c->req.no_history)
        c->kernel->execution_count = c->execution_count;
    c->outcome.exit_code = exit_code_of(c, json_object_get(s->rest, "exit_code"));
    if (said_true(s, "leaves")) /* exit(): the next cell gets another kernel */
        kernel_kill(c->kernel);
    cell_finish(c);
}

static const struct {
    const char *name;
    void (*fn)(struct cell *c, struct said *s);
} events[] = {
    {"clear", cell_on_clear},       {"error", cell_on_error}, {"input", cell_on_input},
    {"done", cell_on_done},         {"comm", cell_on_extra},  {"payload", cell_on_extra},
    {"expressions", cell_on_extra},
};

void cell_event(struct cell *c, const char *name, struct said *s) {
    const json_t *count = json_object_get(s->rest, "execution_count");
    if (cell_is_over(c))
        return;
    if (strcmp(name, "result") == 0 && json_is_integer(count) && json_integer_value(count) >= 0)
        c->execution_count = (uint64_t)json_integer_value(count);
    if (strcmp(name, "result") == 0 || strcmp(name, "display") == 0)
        cell_show(c, s, name[0] == 'r');
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strcmp(events[i].name, name) == 0) {
            events[i].fn(c, s);
            return;
        }
    }
}
