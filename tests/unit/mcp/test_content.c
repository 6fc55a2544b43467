/* mcp/content: what of an answer goes out. */

#include "base/json.h"
#include "mcp/call.h"
#include "mcp/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

static json_t *put(const struct content *c, bool is_error) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    struct json_t *tree = NULL;
    struct err e;
    content_put(&j, c, is_error, false);
    assert_int_equal(json_read(text.data, text.len, 64, &tree, &e), 0);
    return tree;
}

static const char *member(const json_t *parts, size_t i, const char *name) {
    return json_string_value(json_object_get(json_array_get(parts, i), name));
}

static void parts_go_out_in_their_order(void **state) {
    (void)state;
    struct content c = CONTENT_INIT;
    content_text(&c, "a", 1);
    content_media(&c, CONTENT_IMAGE, "image/png", "AAAA", 4);
    content_text(&c, "b\xff", 2);
    json_t *parts = put(&c, false);
    assert_int_equal(json_array_size(parts), 3);
    assert_string_equal(member(parts, 0, "text"), "a");
    assert_string_equal(member(parts, 1, "mimeType"), "image/png");
    assert_string_equal(member(parts, 2, "text"), "b\xef\xbf\xbd");
    json_decref(parts);
    content_done(&c);
}

static void an_answer_without_parts_has_an_empty_text(void **state) {
    (void)state;
    struct content c = CONTENT_INIT;
    json_t *parts = put(&c, false);
    assert_string_equal(member(parts, 0, "text"), "");
    json_decref(parts);
}

static void long_text_keeps_its_ends_and_says_so(void **state) {
    (void)state;
    struct content c = CONTENT_INIT;
    AUTO_BUF text = BUF_INIT;
    buf_adds(&text, "begin");
    for (unsigned i = 0; i < 100000; i++)
        buf_adds(&text, "ü");
    buf_adds(&text, "end");
    content_text(&c, text.data, text.len / 2); /* 'ü' is cut in two */
    content_text(&c, text.data + text.len / 2, text.len - text.len / 2);
    content_whole(&c, &(struct mcp_link){.uri = "x://whole", .name = "whole"});
    for (int error = 0; error < 2; error++) {
        json_t *parts = put(&c, error);
        size_t n = json_array_size(parts);
        const char *last = member(parts, n - 2, "text");
        assert_string_equal(member(parts, n - 1, "uri"), "x://whole");
        assert_memory_equal(member(parts, 0, "text"), "begin", 5);
        assert_non_null(strstr(member(parts, 0, "text"), "left out of 100009; all of them: x://"));
        assert_string_equal(last + strlen(last) - 3, "end");
        size_t most = error ? CONTENT_ERROR_MAX : CONTENT_TEXT_MAX, all = 0;
        for (size_t i = 0; i + 1 < n; i++)
            all += strlen(member(parts, i, "text"));
        assert_true(all <= 2 * most + 200 && all > most);
        json_decref(parts);
    }
    content_done(&c);
}

static void images_are_bounded(void **state) {
    (void)state;
    struct content c = CONTENT_INIT;
    size_t len = 4 * (CONTENT_IMAGE_MAX / 3 + 4);
    char *large = calloc(1, len);
    content_media(&c, CONTENT_IMAGE, "image/png", large, len);
    for (unsigned i = 0; i < CONTENT_IMAGES_MAX + 1; i++)
        content_media(&c, CONTENT_IMAGE, "image/png", "AAAA", 4);
    json_t *parts = put(&c, false);
    assert_non_null(strstr(member(parts, 0, "text"), "left out: image/png"));
    assert_string_equal(member(parts, CONTENT_IMAGES_MAX, "type"), "image");
    assert_non_null(strstr(member(parts, CONTENT_IMAGES_MAX + 1, "text"), "left out"));
    json_decref(parts);
    content_done(&c);
    free(large);
}

static void a_prompt_has_a_message_for_each_part(void **state) {
    (void)state;
    struct content c = CONTENT_INIT;
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    content_text(&c, "a", 1);
    content_role(&c, "assistant");
    content_text(&c, "b", 1);
    content_put_messages(&j, &c);
    assert_string_equal(text.data,
                        "[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"a\"}},"
                        "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"b\"}}]");
    content_done(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_go_out_in_their_order),
        cmocka_unit_test(an_answer_without_parts_has_an_empty_text),
        cmocka_unit_test(long_text_keeps_its_ends_and_says_so),
        cmocka_unit_test(images_are_bounded),
        cmocka_unit_test(a_prompt_has_a_message_for_each_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
