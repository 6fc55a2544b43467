/* See rig_beside.h. */

#include "rig_beside.h"

#include "base/buf.h"
#include "base/fd.h"
#include "loop/crew.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sem_t gate, arrived;
static unsigned nbusy;

static bool wait_at_gate(struct work *w) {
    (void)w;
    sem_post(&arrived);
    while (sem_wait(&gate) < 0)
        continue;
    return false;
}

static bool do_nothing(struct work *w) {
    (void)w;
    return false;
}

static void forget_work(struct work *w) {
    (void)w;
}

static void stop_loop(struct work *w) {
    loop_stop(w->arg);
}

/* Something that is done after all that is as long. */
static void do_work(struct rig *r, bool is_long) {
    struct work w = {.slice = do_nothing,
                     .done = stop_loop,
                     .arg = r->loop,
                     .owner = crew_owner("a"),
                     .is_long = is_long};
    struct err e;
    crew_add(r->engine->crew, &w);
    assert_int_equal(loop_run(r->loop, &e), 0);
}

static void do_short(struct rig *r) {
    rig_say(r, "short");
    do_work(r, false);
}

static void be_busy(struct rig *r, unsigned n) {
    static struct work works[2];
    struct err e;
    assert_int_equal(crew_new(r->loop, 2, &r->engine->crew, &e), 0);
    sem_init(&gate, 0, 0);
    sem_init(&arrived, 0, 0);
    for (nbusy = 0; nbusy < n; nbusy++) {
        works[nbusy] =
            (struct work){.slice = wait_at_gate, .done = forget_work, .is_long = nbusy == 0};
        crew_add(r->engine->crew, &works[nbusy]);
    }
    for (unsigned i = 0; i < n; i++) { /* or somebody else's first work would overtake the second */
        while (sem_wait(&arrived) < 0)
            continue;
    }
}

static void open_gate(void) {
    for (; nbusy; nbusy--)
        sem_post(&gate);
}

/* What was done there may have given it more to do. */
static void be_idle(struct rig *r, bool (*goes_on)(void)) {
    rig_say(r, "idle");
    open_gate();
    do {
        do_work(r, true);
        rig_settle(r);
    } while (goes_on());
}

void rig_beside_end(struct rig *r) {
    if (!r->engine->crew)
        return;
    open_gate();
    crew_free(r->engine->crew);
    r->engine->crew = NULL;
    sem_destroy(&gate);
    sem_destroy(&arrived);
}

static void say(struct rig *r, const char *text, bool in_file) {
    AUTO_BUF json = BUF_INIT;
    AUTO_FD fd = -1;
    struct wire_out o;
    struct err e;
    const char *cell = strstr(text, "CELL");
    buf_addf(&json, "%.*s%s%s%*s", (int)(cell ? cell - text : (ptrdiff_t)strlen(text)), text,
             cell ? rig_process(r)->cell : "", cell ? cell + 4 : "", in_file ? 0 : 5000, "");
    if (in_file)
        assert_int_equal(memfd_open("say", json.data, json.len, &fd, &e), 0);
    k_say_put(&o, &(struct k_say){.json = {json.data, in_file ? 0 : json.len}, .file = fd});
    assert_int_equal(wire_send(rig_process(r)->peer[0], &o, &e), WIRE_SENT);
}

bool rig_beside_word(struct rig *r, const char *word, const char *value, bool (*goes_on)(void)) {
    if (strcmp(word, "say-file") == 0 || strcmp(word, "say-long") == 0)
        say(r, value, word[4] == 'f');
    else if (strcmp(word, "busy") == 0)
        be_busy(r, (unsigned)atoi(value));
    else if (strcmp(word, "idle") == 0)
        be_idle(r, goes_on);
    else if (strcmp(word, "short") == 0)
        do_short(r);
    else
        return false;
    return true;
}
