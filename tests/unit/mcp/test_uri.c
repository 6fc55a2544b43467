/* mcp/uri: templates, and what fits them. */

#include "mcp/uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *pattern, *uri, *name, *value; /* value NULL: it does not fit */
} cases[] = {
    {"test://template/{id}/data", "test://template/123/data", "id", "123"},
    {"test://template/{id}/data", "test://template/a%20b/data", "id", "a b"},
    {"test://template/{id}/data", "test://template//data", "id", NULL},
    {"test://template/{id}/data", "test://template/1/2/data", "id", NULL},
    {"test://template/{id}/data", "test://template/1/data/x", "id", NULL},
    {"test://template/{id}/data", "test://template/1", "id", NULL},
    {"s://{name}/{+path}", "s://box/a/b%2Fc.txt", "path", "a/b/c.txt"},
    {"s://{name}/{+path}", "s://box/a", "name", "box"},
    {"s://{name}/{+path}", "s://box/", "path", NULL},
    {"s://{name}/{+path}", "s://a%00b/c", "name", NULL},
    {"s://{name}/{+path}", "s://%ff/c", "name", NULL},
    {"s://{name}/{+path}", "s://%2/c", "name", NULL},
    {"s://{name}/{+path}", "s://%zz/c", "name", NULL},
    {"s://{name}/{+path}", "s://a/%252e%252e/b", "path", "%2e%2e/b"},
    {"s://{a}-{b}", "s://1-2", "b", "2"},
    {"s://{a}-{b}", "s://1-2-3", "b", "2-3"},
    {"s://{a}-{b}", "s://12", "b", NULL},
    {"s://fixed", "s://fixed", "x", NULL},
};

static void templates_fit_whole_uris(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct uri_match m;
        bool fits = uri_matches(cases[i].pattern, cases[i].uri, &m);
        const char *value = fits ? uri_variable(&m, cases[i].name) : NULL;
        if (cases[i].value) {
            assert_non_null(value);
            assert_string_equal(value, cases[i].value);
        } else {
            assert_null(value);
        }
        uri_match_done(&m);
    }
}

static void a_long_uri_fits_nothing(void **state) {
    (void)state;
    AUTO_BUF uri = BUF_INIT;
    struct uri_match m;
    buf_adds(&uri, "s://a/");
    for (unsigned i = 0; i < URI_MAX; i++)
        buf_addc(&uri, 'x');
    assert_false(uri_matches("s://{name}/{+path}", uri.data, &m));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_fit_whole_uris),
        cmocka_unit_test(a_long_uri_fits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
