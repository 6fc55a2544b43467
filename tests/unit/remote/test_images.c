/* remote/images: what a terminal or a directory gets of a figure. */

#include "remote/images.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int show(struct images *s, const char *mime, const char *data, struct buf *to) {
    json_auto_t *bundle = json_pack("{s:s,s:s}", "text/plain", "<Figure>", mime, data);
    struct err e;
    return images_show(s, bundle, to, &e);
}

static void files_get_the_next_free_number(void **state) {
    (void)state;
    char dir[] = "/tmp/cloche-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    struct images s = {.how = IMAGES_FILES, .dir = dir, .next = 1};
    for (int i = 1; i <= 2; i++) {
        AUTO_BUF out = BUF_INIT;
        snprintf(path, sizeof path, "%s/figure-%d.png", dir, i);
        assert_int_equal(show(&s, "image/png", "aGVsbG8=", &out), 1);
        assert_int_equal(out.len, strlen(path) + 1);
        assert_memory_equal(out.data, path, strlen(path));
        char text[8] = "";
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof text, f));
        fclose(f);
        assert_string_equal(text, "hello");
        s.next = 1; /* a later program starts anew, and finds the first one taken */
    }
    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/figure-%d.png", dir, i);
        unlink(path);
    }
    rmdir(dir);
}

static void a_terminal_gets_base64_and_nothing_else(void **state) {
    (void)state;
    struct images s = {.how = IMAGES_KITTY};
    AUTO_BUF out = BUF_INIT;
    assert_int_equal(show(&s, "image/png", "aGVs\nbG8=", &out), 1);
    assert_string_equal(out.data, "\033_Ga=T,f=100,q=2,m=0;aGVsbG8=\033\\\n");
    buf_clear(&out);
    s.how = IMAGES_ITERM;
    assert_int_equal(show(&s, "image/jpeg", "aGVsbG8=", &out), 1);
    assert_string_equal(out.data, "\033]1337;File=inline=1;size=5:aGVsbG8=\a\n");
    buf_clear(&out);
    assert_int_equal(show(&s, "image/png", "aG\033]0;x\aVsbG8=", &out), 0);
    assert_int_equal(out.len, 0);
}

static void what_is_no_image_or_not_wanted_is_text(void **state) {
    (void)state;
    struct images s = {.how = IMAGES_KITTY};
    AUTO_BUF out = BUF_INIT;
    assert_int_equal(show(&s, "text/html", "<b>", &out), 0);
    s.how = IMAGES_OFF;
    assert_int_equal(show(&s, "image/png", "aGVsbG8=", &out), 0);
    assert_int_equal(out.len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_get_the_next_free_number),
        cmocka_unit_test(a_terminal_gets_base64_and_nothing_else),
        cmocka_unit_test(what_is_no_image_or_not_wanted_is_text),
    };
    return cmocka_run_group_tests_name("remote/images", tests, NULL, NULL);
}
