/* The word that was meant. */

#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {
    "timeout_ms", "code",   "stdin", "files",  "last_line_interactive",
    "create",     "delete", "exec",  "resume", "restart",
    "--memory",   "--cpus", "--cpu", "--disk"};

static const char *meant(const char *word) {
    struct nearest n = {.word = word};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        nearest_offer(&n, words[i]);
    return nearest_found(&n);
}

static void test_finds_what_was_meant(void **state) {
    (void)state;
    static const struct {
        const char *word, *meant; /* or NULL */
    } cases[] = {
        {"timeout", "timeout_ms"},
        {"tiemout_ms", "timeout_ms"},
        {"cod", "code"},
        {"file", "files"},
        {"craete", "create"},
        {"dellete", "delete"},
        {"--memroy", "--memory"},
        {"--cpi", "--cpu"},
        {"restar", "restart"},
        {"xyzzy", NULL},
        {"", NULL},
        {"c", NULL},
        {"last_line_interactve", "last_line_interactive"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = meant(cases[i].word);
        if (!cases[i].meant)
            assert_null(found);
        else
            assert_string_equal(found, cases[i].meant);
    }
}

static void test_long_words_are_nobodys(void **state) {
    (void)state;
    char word[1000];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_null(meant(word));
    struct nearest n = {.word = "aaa"};
    nearest_offer(&n, word);
    assert_null(nearest_found(&n));
}

static void test_asks_only_when_there_is_one(void **state) {
    (void)state;
    char text[64];
    struct nearest n = {.word = "creat"};
    assert_string_equal(nearest_ask(&n, text, sizeof text), "");
    nearest_offer(&n, "create");
    assert_string_equal(nearest_ask(&n, text, sizeof text), " (did you mean create?)");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finds_what_was_meant),
                                       cmocka_unit_test(test_long_words_are_nobodys),
                                       cmocka_unit_test(test_asks_only_when_there_is_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
