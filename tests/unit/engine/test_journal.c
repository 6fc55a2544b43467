/* engine/live/journal: what the next server reads, whoever wrote it. */

#include "base/fd.h"
#include "engine/live/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (4096 + 2 * (8 << 20))

/* The head of a journal before there were versions: a counter of 5, the second text counts, and it
 * has 12 bytes. */
static const uint8_t old_head[] = {5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 12, 0, 0, 0};
static const char old_text[] = "{\"id\":\"sb\"}";

static int old_journal(void) {
    int fd = memfd_create("journal", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    assert_int_equal(pwrite(fd, old_head, sizeof old_head, 0), sizeof old_head);
    assert_int_equal(pwrite(fd, old_text, 12, 4096 + (8 << 20)), 12);
    return fd;
}

static void what_was_written_is_read_by_the_next_server(void **state) {
    (void)state;
    struct err e;
    struct journal *j, *next;
    AUTO_BUF lasting = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    AUTO_BUF read = BUF_INIT;
    assert_int_equal(journal_new(&j, "a tenant", "sbx_1", &e), 0);
    buf_adds(&lasting, "it: ");
    buf_adds(&text, "first");
    journal_write(j, 1, &lasting, &text);
    buf_adds(&text, " and second");
    journal_write(j, 1, &lasting, &text);
    ++*journal_counter(j);
    int fd = dup(journal_fd(j));
    assert_int_equal(journal_open(&fd, &next, &read, &e), 0);
    assert_string_equal(read.data, "it: first and second");
    assert_int_equal(*journal_counter(next), 1);
    assert_string_equal(journal_tenant(next), "a tenant");
    assert_string_equal(journal_id(next), "sbx_1");
    journal_free(next);
    journal_free(j);
}

static void assert_says(const struct journal *j, const char *what) {
    struct err e;
    struct journal *next;
    AUTO_BUF read = BUF_INIT;
    int fd = dup(journal_fd(j));
    assert_int_equal(journal_open(&fd, &next, &read, &e), 0);
    assert_string_equal(read.data, what);
    journal_free(next);
}

/* There are two texts in it, and each has what lasts. */
static void what_lasts_is_written_once_for_each_text(void **state) {
    (void)state;
    static const struct {
        uint64_t edition;
        bool needs;
        const char *lasting, *rest, *says;
    } writes[] = {
        {1, true, "old ", "1", "old 1"},     {1, true, "old ", "2", "old 2"},
        {1, false, "", "3", "old 3"},        {1, false, "", "four", "old four"},
        {2, true, "newer ", "5", "newer 5"}, {2, true, "newer ", "6", "newer 6"},
        {2, false, "", "7", "newer 7"},
    };
    struct err e;
    struct journal *j;
    assert_int_equal(journal_new(&j, "t", "sbx_1", &e), 0);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        AUTO_BUF lasting = BUF_INIT;
        AUTO_BUF rest = BUF_INIT;
        buf_adds(&lasting, writes[i].lasting);
        buf_adds(&rest, writes[i].rest);
        assert_int_equal(journal_needs(j, writes[i].edition), writes[i].needs);
        journal_write(j, writes[i].edition, &lasting, &rest);
        assert_says(j, writes[i].says);
    }
    journal_free(j);
}

static void too_long_a_text_leaves_the_last_one(void **state) {
    (void)state;
    struct err e;
    struct journal *j;
    AUTO_BUF lasting = BUF_INIT;
    AUTO_BUF rest = BUF_INIT;
    AUTO_BUF much = BUF_INIT;
    assert_int_equal(journal_new(&j, "t", "sbx_1", &e), 0);
    buf_adds(&lasting, "l");
    buf_adds(&rest, "r");
    memset(buf_reserve(&much, 8 << 20), 0x20, 8 << 20);
    buf_commit(&much, 8 << 20);
    journal_write(j, 1, &lasting, &rest);
    journal_write(j, 1, &lasting, &much);
    assert_says(j, "lr");
    journal_write(j, 2, &much, &rest);
    assert_says(j, "lr");
    journal_write(j, 3, &lasting, &rest);
    assert_says(j, "lr");
    journal_free(j);
}

static void an_older_journal_is_read(void **state) {
    (void)state;
    struct err e;
    struct journal *j;
    AUTO_BUF read = BUF_INIT;
    int fd = old_journal();
    assert_int_equal(journal_open(&fd, &j, &read, &e), 0);
    assert_string_equal(read.data, old_text);
    assert_int_equal(*journal_counter(j), 5);
    assert_string_equal(journal_id(j), "");
    journal_free(j);
}

static void a_newer_journal_is_refused_and_names_its_sandbox(void **state) {
    (void)state;
    struct err e;
    struct journal *j, *next = NULL;
    AUTO_BUF text = BUF_INIT;
    AUTO_BUF read = BUF_INIT;
    const uint32_t newer = JOURNAL_VERSION + 1;
    assert_int_equal(journal_new(&j, "t", "sbx_1", &e), 0);
    buf_adds(&text, "{}");
    journal_write(j, 1, &text, &(struct buf)BUF_INIT);
    assert_int_equal(pwrite(journal_fd(j), &newer, sizeof newer, sizeof old_head), sizeof newer);
    int fd = dup(journal_fd(j));
    assert_int_equal(journal_open(&fd, &next, &read, &e), -1);
    assert_int_equal(e.code, EPROTONOSUPPORT);
    assert_int_equal(read.len, 0);
    assert_string_equal(journal_id(next), "sbx_1");
    journal_free(next);
    journal_free(j);
}

static void a_journal_of_another_size_or_without_text_is_refused(void **state) {
    (void)state;
    struct err e;
    struct journal *j = NULL;
    AUTO_BUF read = BUF_INIT;
    int fd = old_journal();
    assert_int_equal(ftruncate(fd, SIZE - 1), 0);
    assert_int_equal(journal_open(&fd, &j, &read, &e), -1);
    fd_close(&fd);
    fd = old_journal();
    const uint32_t none = UINT32_MAX;
    assert_int_equal(pwrite(fd, &none, sizeof none, 8), sizeof none);
    assert_int_equal(journal_open(&fd, &j, &read, &e), -1);
    journal_free(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_by_the_next_server),
        cmocka_unit_test(what_lasts_is_written_once_for_each_text),
        cmocka_unit_test(too_long_a_text_leaves_the_last_one),
        cmocka_unit_test(an_older_journal_is_read),
        cmocka_unit_test(a_newer_journal_is_refused_and_names_its_sandbox),
        cmocka_unit_test(a_journal_of_another_size_or_without_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
