/* Reading imports out of program text, and choosing a profile by them. */

#include "engine/oneshot/imports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct names {
    char text[4096];
    size_t len;
    unsigned n;
};

static void add_name(void *arg, const char *module, size_t len) {
    struct names *names = arg;
    names->n++;
    if (names->len + len + 2 > sizeof names->text)
        return;
    if (names->len)
        names->text[names->len++] = ' ';
    memcpy(names->text + names->len, module, len);
    names->len += len;
    names->text[names->len] = '\0';
}

static const struct scan_case {
    const char *name, *code, *expected;
} scan_cases[] = {
    {"nothing in an empty program", "", ""},
    {"a plain import", "import numpy", "numpy"},
    {"the top of a dotted name", "import os.path\n", "os"},
    {"several modules with aliases", "import a.b as c, d ,e as f\n", "a d e"},
    {"from takes the module, not the names", "from x.y import z, import_me\n", "x"},
    {"from with parentheses over lines", "from x import (\n  a,\n  b as c,\n)\nimport y\n", "x y"},
    {"from with a star", "from x import *\nimport y", "x y"},
    {"an indented import", "def f():\n\timport pandas as pd\n", "pandas"},
    {"after a colon", "if True: import a\n", "a"},
    {"after a semicolon", "x = 1; import a; from b import c; import d", "a b d"},
    {"continued lines", "import \\\n  a, \\\r\n b\nfrom \\\n c \\\n import d", "a b c"},
    {"tabs and form feeds between words", "import\ta\nfrom\fb\timport\tc\n", "a b"},
    {"blanks around dots", "import a . b\nfrom c . d import e\n", "a c"},
    {"relative imports are left out", "from . import a\nfrom .b import c\nfrom ... import d\n", ""},
    {"a relative import written tightly", "from.import a\nfrom ..b import c\nimport e", "e"},
    {"comments", "# import a\nx = 1 # from b import c\nimport d # import e\n", "d"},
    {"short strings", "x = 'import a'; y = \"from b import c\"\nimport d", "d"},
    {"escaped quotes", "x = 'it\\'s import a'\nimport b", "b"},
    {"raw strings protect the quote too", "x = r'\\'import a'\nimport b", "b"},
    {"long strings", "'''\nimport a\n'''\nimport b\n\"\"\"'''import c\"\"\"\n", "b"},
    {"a quote inside a long string", "\"\"\"a \" b \"\" import c\"\"\"\nimport d", "d"},
    {"an escaped quote at the end of a long string", "'''x\\''''\nimport a", "a"},
    {"prefixed strings", "rb'import a'; f\"import b\"; BR'''import c'''\nimport d", "d"},
    {"a string continued over a line", "x = 'a \\\nimport b'\nimport c", "c"},
    {"a string continued over a CRLF line", "x = 'a \\\r\nimport b'\nimport c", "c"},
    {"an open short string ends with its line", "x = 'oops\nimport a", "a"},
    {"an open long string swallows the rest", "x = '''oops\nimport a", ""},
    {"an empty string", "x = ''\nimport a\ny = \"\"\nimport b", "a b"},
    {"names that only begin like the keyword", "importlib.reload(x)\nimports = from_x = 1\n", ""},
    {"yield from and raise from", "yield from a\nraise B from c\nimport d\n", "d"},
    {"an import behind a stray from", "x from import y\n", "y"},
    {"Windows line ends", "import a\r\nimport b\r\n", "a b"},
    {"old Macintosh line ends", "import a\rimport b\r", "a b"},
    {"a byte order mark", "\xef\xbb\xbfimport a\n", "a"},
    {"a Unicode module name", "import \xc3\xa9t\xc3\xa9\n", "\xc3\xa9t\xc3\xa9"},
    {"an unfinished import at the end", "import", ""},
    {"an unfinished from at the end", "from a", ""},
    {"an unfinished alias at the end", "import a as", "a"},
    {"an unfinished list at the end", "import a,", "a"},
    {"a backslash at the end", "import a\\", "a"},
    {"a backslash in an open string at the end", "import a\nx = 'b\\", "a"},
    {"two quotes at the end", "import a\n''", "a"},
};

static void test_scan(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof scan_cases / sizeof *scan_cases; k++) {
        const struct scan_case *c = &scan_cases[k];
        /* A copy without the NUL, so that a sanitizer sees a read past the end. */
        size_t len = strlen(c->code);
        uint8_t *code = malloc(len ? len : 1);
        memcpy(code, c->code, len);
        struct names names = {.text = ""};
        imports_scan(code, len, add_name, &names);
        free(code);
        if (strcmp(names.text, c->expected) != 0)
            fail_msg("%s: got \"%s\", expected \"%s\"", c->name, names.text, c->expected);
    }
}

static void test_scan_takes_nul_bytes(void **state) {
    (void)state;
    static const char code[] = "\0import a\0import b\0";
    struct names names = {.text = ""};
    imports_scan((const uint8_t *)code, sizeof code - 1, add_name, &names);
    assert_string_equal(names.text, "a b");
}

static void test_scan_is_bounded(void **state) {
    (void)state;
    static const char line[] = "import a\n";
    size_t one = sizeof line - 1, len = (IMPORTS_MAX_NAMES + 10) * one;
    uint8_t *code = malloc(IMPORTS_MAX_BYTES + one);
    for (size_t at = 0; at < len; at += one)
        memcpy(code + at, line, one);
    struct names names = {.text = ""};
    imports_scan(code, len, add_name, &names);
    assert_int_equal(names.n, IMPORTS_MAX_NAMES);

    memset(code, '\n', IMPORTS_MAX_BYTES);
    memcpy(code + IMPORTS_MAX_BYTES, line, one);
    names = (struct names){.text = ""};
    imports_scan(code, IMPORTS_MAX_BYTES + one, add_name, &names);
    assert_int_equal(names.n, 0);
    free(code);
}

static const char *const profiles[] = {"json os", "numpy pandas matplotlib.pyplot", "torch numpy",
                                       "numpy pandas torch"};

static const struct choose_case {
    const char *name, *code;
    unsigned nprofiles, expected;
} choose_cases[] = {
    {"no import takes the first", "print(1)", 4, 0},
    {"what the first has takes the first", "import os, json", 4, 0},
    {"what nobody has takes the first", "import requests", 4, 0},
    {"the smallest that has it", "import numpy", 4, 1},
    {"a later one", "import torch", 4, 2},
    {"all of them", "import pandas, torch, os, requests", 4, 3},
    {"dotted preloads count by their top", "from matplotlib import cm", 4, 1},
    {"a part of a name is not the name", "import num, matplotlib_venn", 4, 0},
    {"nobody has all: the one that lacks the fewest", "import pandas, matplotlib, torch", 4, 1},
    {"one profile", "import numpy", 1, 0},
    {"no profile", "import numpy", 0, 0},
};

static void test_choose(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof choose_cases / sizeof *choose_cases; k++) {
        const struct choose_case *c = &choose_cases[k];
        unsigned got =
            imports_choose((const uint8_t *)c->code, strlen(c->code), profiles, c->nprofiles);
        if (got != c->expected)
            fail_msg("%s: got %u, expected %u", c->name, got, c->expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_takes_nul_bytes),
        cmocka_unit_test(test_scan_is_bounded),
        cmocka_unit_test(test_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
