/* The pool: how many sandboxes it asks for, who gets one, and what it does when they fail or die.
 */

#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Guests are named by two letters: their tenant, and which of its own. enter=a1 comes, leave=a1
 * goes without a sandbox, over=a1 has had one; "a1" is said when it gets one, "a1!KIND" when it is
 * refused. size=N is what the pool wants to hold ready. */
static const struct rig_case cases[] = {
    {"nothing is wanted, nothing is asked for", "size=0 profile", ""},
    {"it asks for as many as it is to hold", "size=2 profile", "W_MAKE W_MAKE"},
    {"while the interpreter starts, one is made ready", "size=3 enter=a1", "W_MAKE"},
    {"a guest that comes first waits for the one that is being made",
     "size=1 profile enter=a1 made up", "W_MAKE a1"},
    {"a ready one is given away at once, and replaced a moment later",
     "size=1 profile made up enter=a1 refill", "W_MAKE a1 W_MAKE"},
    {"the refill comes with the end of a program that is quick",
     "size=1 profile made up enter=a1 over=a1", "W_MAKE a1 W_END W_MAKE"},
    {"each that waits has one made for it", "profile enter=a1 enter=a2", "W_MAKE W_MAKE"},
    {"the oldest ready one is given first", "size=2 profile made up made up enter=a1 over=a1",
     "W_MAKE W_MAKE a1 W_END (1) W_MAKE"},
    {"tenants take turns", "profile enter=a1 enter=a2 enter=b1 made up made up made up",
     "W_MAKE W_MAKE W_MAKE a1 b1 a2"},
    {"one that leaves is not given a sandbox", "profile enter=a1 enter=a2 leave=a1 made up",
     "W_MAKE W_MAKE a2"},
    {"what was made for one that left is ended", "profile enter=a1 made leave=a1 up",
     "W_MAKE W_END"},
    {"a ready one that dies is replaced", "size=1 profile made up down gone",
     "W_MAKE W_END W_MAKE"},
    {"a ready sandbox that is gone is replaced", "size=1 profile made up gone",
     "W_MAKE W_END W_MAKE"},
    {"a kernel that talks without a guest is ended", "size=1 profile made up up", "W_MAKE W_END"},
    {"one that could not be made is asked for again, after a while", "size=1 profile failed retry",
     "W_MAKE W_MAKE"},
    {"several that fail together are one failure",
     "profile enter=a1 enter=a2 failed failed retry failed failed retry failed failed retry",
     "W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE"},
    {"one that cannot be a kernel is a failure", "size=1 profile made unfit retry",
     "W_MAKE W_END W_MAKE"},
    {"one that dies before it is ready is a failure", "size=1 profile made down retry",
     "W_MAKE W_END W_MAKE"},
    {"one that is not ready in time is a failure", "size=1 profile made late retry",
     "W_MAKE W_END W_MAKE"},
    {"whoever waits is refused when it fails again and again",
     "profile enter=a1 failed retry failed retry failed retry failed retry failed",
     "W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE a1!no_sandbox"},
    {"a success in between is forgiven",
     "profile enter=a1 failed retry failed retry failed retry failed retry made up "
     "enter=a2 failed retry failed retry",
     "W_MAKE W_MAKE W_MAKE W_MAKE W_MAKE a1 W_MAKE W_MAKE W_MAKE"},
    {"who waits for a broken profile is refused", "profile enter=a1 broken",
     "W_MAKE a1!profile_broken"},
    {"a broken profile is not asked for anything", "broken enter=a1", ""},
    {"no more than there may be", "most=2 size=4 profile", "W_MAKE W_MAKE"},
    {"a guest waits for a place, and gets the next one",
     "most=1 profile enter=a1 made up enter=a2 over=a1 gone made up", "W_MAKE a1 W_END W_MAKE a2"},
    {"a guest is told that it waited for a place",
     "most=1 profile enter=a1 made up enter=a2 why=a2", "W_MAKE a1 a2?queue_timeout"},
    {"without memory for it, a guest waits though one is ready",
     "budget=300 size=1 profile made up memory=290 enter=a1 why=a1 memory=0 look",
     "W_MAKE a1?memory_budget a1"},
    {"who wants no more than an equal share is not overtaken",
     "budget=300 size=1 profile made up memory=200 files=90 enter=a1 files=0 enter=b1 memory=0 "
     "look",
     "W_MAKE a1 W_MAKE"},
    {"who wants more than that keeps nobody waiting",
     "budget=300 size=1 profile made up memory=200 files=200 enter=a1 files=0 enter=b1",
     "W_MAKE b1 W_MAKE"},
    {"and comes when there is room",
     "budget=300 size=1 profile made up memory=200 files=200 enter=a1 files=0 enter=b1 made up "
     "over=b1 memory=0 look",
     "W_MAKE b1 W_MAKE W_END (1) a1"},
};

static struct guest_of {
    struct guest guest;
    char name[4], tenant[2];
    struct sandbox *sandbox;
} guests[16];
static unsigned nguests;
static struct rig rig;
static uint64_t foreign; /* bytes of the budget that somebody else has */
static uint64_t files;   /* bytes that the next guests bring */

static void on_assign(void *owner, struct sandbox *s) {
    struct guest_of *g = owner;
    g->sandbox = s;
    rig_say(&rig, "%s", g->name);
}

static void on_fail(void *owner, const struct err *why) {
    const struct guest_of *g = owner;
    rig_say(&rig, "%s!%s", g->name, why->kind);
}

static void on_lost(void *owner) {
    struct guest_of *g = owner;
    g->sandbox->guest = NULL;
}

static const struct guest_kind kind = {.assign = on_assign, .fail = on_fail, .lost = on_lost};

static struct guest_of *guest(const char *name) {
    for (unsigned i = 0; i < nguests; i++) {
        if (strcmp(guests[i].name, name) == 0)
            return &guests[i];
    }
    struct guest_of *new = &guests[nguests++];
    *new = (struct guest_of){.guest = {.kind = &kind,
                                       .owner = new,
                                       .tenant = new->tenant,
                                       .limits = &rig.engine->config.defaults,
                                       .files_bytes = files}};
    snprintf(new->name, sizeof new->name, "%s", name);
    new->tenant[0] = name[0];
    return new;
}

static void over(struct guest_of *g) {
    g->sandbox->guest = NULL;
    sandbox_end(g->sandbox);
    pool_refill(g->sandbox->pool);
}

static bool on_word(struct rig *r, const char *word, const char *value) {
    struct engine *g = r->engine;
    struct profile_pool *p = &g->pools[0];
    struct err e;
    if (strcmp(word, "enter") == 0) {
        pool_enter(p, &guest(value)->guest, (char[]){value[0], '\0'});
    } else if (strcmp(word, "leave") == 0) {
        pool_leave(p, &guest(value)->guest);
    } else if (strcmp(word, "over") == 0) {
        over(guest(value));
    } else if (strcmp(word, "why") == 0) {
        pool_late(p, &guest(value)->guest, &e);
        rig_say(r, "%s?%s", value, e.kind);
    } else if (strcmp(word, "size") == 0) {
        g->config.profiles[0].pool = (uint32_t)(value[0] - '0');
    } else if (strcmp(word, "most") == 0) {
        g->config.max_sandboxes = (uint32_t)(value[0] - '0');
    } else if (strcmp(word, "budget") == 0) {
        g->config.memory_budget_mb = 300;
    } else if (strcmp(word, "memory") == 0) {
        g->charged -= foreign;
        foreign = strtoull(value, NULL, 10) << 20;
        g->charged += foreign;
    } else if (strcmp(word, "files") == 0) {
        files = strtoull(value, NULL, 10) << 20;
    } else if (strcmp(word, "refill") == 0) {
        rig_fire(r, &p->refill);
    } else if (strcmp(word, "retry") == 0) {
        rig_fire(r, &p->retry);
    } else if (strcmp(word, "look") == 0) {
        rig_fire(r, &g->look_again);
    } else if (strcmp(word, "late") == 0) {
        rig_fire(r, &g->sandboxes->deadline);
    } else {
        return false;
    }
    return true;
}

static void sandboxes_are_asked_for_and_given_as_the_script_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct config c = rig_config();
        nguests = 0;
        foreign = files = 0;
        rig_init(&rig, &c);
        rig.engine->max_making = 4;
        rig.word = on_word;
        rig_play(&rig, &cases[i]);
        rig.engine->config.max_sandboxes = RIG_SANDBOXES; /* of which there are descriptors */
        rig_done(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sandboxes_are_asked_for_and_given_as_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
