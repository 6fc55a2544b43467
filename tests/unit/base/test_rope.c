/* base/rope: whatever the pieces and wherever a slice ends, what comes out is what would have come
 * out at once. */

#include "base/rope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct blob *blob_of(const void *data, size_t len) {
    struct buf b = BUF_INIT;
    buf_add(&b, data, len);
    return blob_take(&b);
}

static void any_cut_gives_the_same(void **state) {
    (void)state;
    static const char *const bits[] = {"a",    "\xc3\xa4",         "\xe2\x82\xac",
                                       "\x01", "\xf0\x9f\x98\x80", "\x80",
                                       "\xf0", "\xe2\x82",         "\xbf\xbf\xbf\xbf\xbf"};
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        AUTO_BUF text = BUF_INIT;
        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            buf_adds(&text, bits[(seed >> 16) % (sizeof bits / sizeof *bits)]);
        }
        AUTO_BUF want = BUF_INIT, got = BUF_INIT;
        json_escape(&want, text.data, text.len);
        for (size_t at = 0, n; at < text.len; at += n) {
            n = rope_cut(text.data + at, text.len - at, 4 + (size_t)round % 9);
            assert_true(n > 0);
            json_escape(&got, text.data + at, n);
        }
        assert_string_equal(got.data, want.data);
    }
}

static void slices_are_the_whole(void **state) {
    (void)state;
    AUTO_ROPE rope = ROPE_INIT;
    AUTO_BUF json = BUF_INIT, want = BUF_INIT, got = BUF_INIT;
    struct jw j = JW_INIT(&json), w = JW_INIT(&want);
    char loud[20000];
    memset(loud, 1, sizeof loud);
    struct blob *large = blob_of(loud, sizeof loud), *small = blob_of("\"hi\"", 4);
    jw_object(&j);
    rope_key_text(&rope, &j, "large", large);
    rope_key_text(&rope, &j, "small", small);
    jw_key_int(&j, "n", 1);
    jw_object_end(&j);
    rope_add(&rope, &json);
    jw_object(&w);
    jw_key(&w, "large");
    jw_strn(&w, loud, sizeof loud);
    jw_key_str(&w, "small", "\"hi\"");
    jw_key_int(&w, "n", 1);
    jw_object_end(&w);
    blob_unref(large);
    blob_unref(small);
    assert_int_equal(rope.n, 3); /* the small one is not worth a piece */
    size_t before = 0;
    while (rope_read(&rope, 1000, &got)) {
        assert_true(got.len > before && got.len < before + 1000 + 6 * 4096);
        before = got.len;
    }
    assert_string_equal(got.data, want.data);
    assert_int_equal(rope.bytes, 0);
}

static void values_that_are_json_stay_as_they_are(void **state) {
    (void)state;
    AUTO_ROPE rope = ROPE_INIT, value = ROPE_INIT;
    AUTO_BUF json = BUF_INIT, got = BUF_INIT;
    struct jw j = JW_INIT(&json);
    rope_adds(&value, "[1,");
    rope_adds(&value, "\"\\n\"]");
    jw_object(&j);
    rope_key_json(&rope, &j, "a", &value);
    rope_key_json(&rope, &j, "b", &value);
    jw_key_int(&j, "n", 1);
    jw_object_end(&j);
    rope_add(&rope, &json);
    assert_false(rope_read(&rope, 100, &got));
    assert_string_equal(got.data, "{\"a\":[1,\"\\n\"],\"b\":[1,\"\\n\"],\"n\":1}");
}

static void shared_bytes_count_once(void **state) {
    (void)state;
    size_t meter = 0;
    struct rope a = {.meter = &meter}, b = {.meter = &meter};
    struct blob *blob = blob_of("0123456789", 10);
    rope_add_text(&a, blob, 0, 10);
    rope_add_text(&a, blob, 2, 3);
    rope_add_rope(&b, &a);
    assert_int_equal(meter, 10);
    assert_int_equal(b.bytes, 13);
    AUTO_BUF got = BUF_INIT;
    assert_false(rope_read(&a, 100, &got));
    assert_string_equal(got.data, "0123456789234");
    assert_int_equal(meter, 10);
    rope_done(&b);
    assert_int_equal(meter, 0);
    assert_int_equal(blob->refs, 1);
    blob_unref(blob);
    rope_done(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same),
        cmocka_unit_test(slices_are_the_whole),
        cmocka_unit_test(values_that_are_json_stay_as_they_are),
        cmocka_unit_test(shared_bytes_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
