/* Headers of tars: what is taken of them, and what they cannot make us do. */

#include "tar_bytes.h"

#include "base/fd.h"
#include "pack/pax.h"
#include "pack/tar_header.h"
#include "pack/unpacker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- numbers and paths of a header ---- */

static void sizes_are_octal_or_base_256(void **state) {
    (void)state;
    static const struct {
        const char *field; /* 12 bytes, the rest of them NUL */
        size_t len;
        int64_t size;
    } cases[] = {
        {"00000000017", 12, 15},
        {"     17 ", 8, 15},
        {"777777777777", 12, 0777777777777},
        {"", 0, 0},
        {"12x", 3, 10},
        {"-1", 2, -1},
        {"\x80\0\0\0\0\0\0\0\0\0\1\2", 12, 258},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12, INT64_MAX},
        {"\x80\0\0\1\0\0\0\0\0\0\0\0", 12, INT64_MAX},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, -1},
        {"\xc0\0\0\0\0\0\0\0\0\0\0\0", 12, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char h[512];
        struct tar_header out;
        tar_head(h, "f", '0', "", 0);
        memset(h + 124, 0, 12);
        memcpy(h + 124, cases[i].field, cases[i].len);
        tar_sum(h);
        assert_true(tar_header_read((const uint8_t *)h, &out));
        if (out.size != cases[i].size)
            fail_msg("case %zu: %lld", i, (long long)out.size);
    }
}

static void sums_are_of_signed_or_unsigned_bytes(void **state) {
    (void)state;
    char h[512];
    struct tar_header out;
    tar_head(h, "\xff\xfe", '0', "", 0);
    tar_sum(h);
    assert_true(tar_header_read((const uint8_t *)h, &out));
    memset(h + 148, ' ', 8);
    int sum = 0;
    for (int i = 0; i < 512; i++)
        sum += (signed char)h[i];
    snprintf(h + 148, 8, "%06o", (unsigned)sum);
    assert_true(tar_header_read((const uint8_t *)h, &out));
    h[0] ^= 1;
    assert_false(tar_header_read((const uint8_t *)h, &out));
}

static void names_fill_their_fields(void **state) {
    (void)state;
    char h[512];
    struct tar_header out;
    tar_head(h, "", '\0', "", 0);
    memset(h, 'n', 100);
    memset(h + 157, 'l', 100);
    memset(h + 345, 'p', 155);
    tar_sum(h);
    assert_true(tar_header_read((const uint8_t *)h, &out));
    assert_int_equal(out.type, '0');
    assert_int_equal(strlen(out.path), 256);
    assert_int_equal(out.path[155], '/');
    assert_int_equal(strlen(out.link), 100);
    memcpy(h + 257, "ustar  ", 8); /* GNU's: times are there */
    tar_sum(h);
    assert_true(tar_header_read((const uint8_t *)h, &out));
    assert_int_equal(strlen(out.path), 100);
}

/* ---- pax ---- */

static bool read_in_pieces(const char *text, size_t len, size_t piece, struct tar_more *to) {
    struct pax p;
    memset(to, 0, sizeof *to);
    pax_begin(&p, to);
    for (size_t i = 0; i < len; i += piece) {
        if (!pax_read(&p, text + i, len - i < piece ? len - i : piece))
            return false;
    }
    return pax_end(&p);
}

static void pax_says_path_link_size_and_time(void **state) {
    (void)state;
    static const char text[] = "10 path=a\n"
                               "12 path=b=\n\n" /* the last one counts */
                               "14 linkpath=l\n"
                               "11 size=12\n"
                               "30 mtime=1500000000.123456789\n"
                               "18 comment=a=b\nc \n"
                               "30 SCHILY.acl.access=user::rw\n"
                               "5 =x\n";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        static struct tar_more more;
        assert_true(read_in_pieces(text, sizeof text - 1, piece, &more));
        assert_string_equal(more.path.data, "b=\n");
        assert_string_equal(more.link.data, "l");
        assert_true(more.has_size && more.size == 12 && !more.is_sparse);
        assert_true(more.has_mtime && more.mtime_ns == 1500000000123456789u);
    }
}

static void pax_values_out_of_bounds_are_none(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t size;
        uint64_t mtime_ns;
    } cases[] = {
        {"size=-1", -1, 0},
        {"size=", -1, 0},
        {"size=1x", -1, 0},
        {"size=9223372036854775807", INT64_MAX, 0},
        {"size=9223372036854775808", -1, 0},
        {"mtime=-1.5", 0, 0},
        {"mtime=.5", 0, 0},
        {"mtime=8589934592", 0, 0},
        {"mtime=1.12345678999999999", 0, 1123456789},
        {"mtime=99999999999999999999.5", 0, 0},
        {"mtime=", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct tar_more more;
        char record[64];
        int rest = (int)strlen(cases[i].text) + 2, digits = rest + 1 < 10 ? 1 : 2;
        int len = snprintf(record, sizeof record, "%d %s\n", rest + digits, cases[i].text);
        assert_true(read_in_pieces(record, (size_t)len, 3, &more));
        if (more.size != cases[i].size || more.mtime_ns != cases[i].mtime_ns)
            fail_msg("%s: %lld %llu", cases[i].text, (long long)more.size,
                     (unsigned long long)more.mtime_ns);
    }
}

static void pax_of_another_form_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "x",          "10path=a\n",   "11 path=a\n",
        "8 path=a\n", "3 \n",         "2 ",
        "4 a\n",      "0 path=a\n",   "5 x=",
        "10 path=ab", "1000000000 p", " 5 a=\n",
        "-5 a=\n",    "7 path\n",     "18446744073709551626 path=a\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static struct tar_more more;
        if (read_in_pieces(texts[i], strlen(texts[i]), 2, &more))
            fail_msg("%s", texts[i]);
    }
}

/* ---- whole archives ---- */

static int open_and_read(const struct buf *b, struct pack_entry *out, char path[64],
                         struct err *e) {
    AUTO_FD fd = -1;
    struct unpacker *u;
    assert_int_equal(memfd_of("archive", b->data, b->len, &fd, e), 0);
    assert_int_equal(unpacker_new(fd, &u, e), 0);
    int r = unpacker_next(u, out, e);
    snprintf(path, 64, "%s", r > 0 ? out->path : "");
    unpacker_free(u);
    return r;
}

static void maps_of_holes_are_refused(void **state) {
    (void)state;
    static const char *const records[] = {"22 GNU.sparse.major=1\n", "22 GNU.sparse.size=10\n",
                                          "21 SUN.holesdata=0 1\n"};
    for (size_t i = 0; i <= sizeof records / sizeof *records; i++) {
        AUTO_BUF b = BUF_INIT;
        struct pack_entry out;
        struct err e = {0};
        char path[64];
        bool is_old = i == sizeof records / sizeof *records;
        if (!is_old)
            tar_add(&b, "pax", 'x', "", records[i], strlen(records[i]));
        tar_add(&b, "f", is_old ? 'S' : '0', "", "x", 1);
        tar_end(&b);
        assert_int_equal(open_and_read(&b, &out, path, &e), -1);
        assert_string_equal(e.kind, "bad_archive");
        assert_non_null(strstr(e.text, "\"f\" in the archive has a map of its holes"));
    }
}

static void names_come_from_whoever_says_them(void **state) {
    (void)state;
    AUTO_BUF b = BUF_INIT;
    struct pack_entry out;
    struct err e = {0};
    char path[64];
    tar_add(&b, "pax", 'g', "", "11 path=no\n", 11);
    tar_add(&b, "label", 'V', "", "", 0);
    tar_add(&b, "././@LongLink", 'L', "", "long/name\0and more", 18);
    tar_add(&b, "././@LongLink", 'K', "", "target", 6);
    tar_add(&b, "short", '2', "near", "", 0);
    tar_end(&b);
    assert_int_equal(open_and_read(&b, &out, path, &e), 1);
    assert_string_equal(path, "long/name");
    assert_int_equal(out.type, PACK_SYMLINK);
    b.len = 0;
    tar_add(&b, "old/", '\0', "", "", 0);
    tar_end(&b);
    assert_int_equal(open_and_read(&b, &out, path, &e), 1);
    assert_int_equal(out.type, PACK_DIRECTORY);
}

static void archives_that_lie_are_refused(void **state) {
    (void)state;
    static char names[20000];
    static const struct {
        char type;
        size_t said;
        const char *word;
    } cases[] = {
        {'L', 20000, "more than 4095"}, {'x', 700, "damaged pax"},   {'x', 1 << 20, "too early"},
        {'L', 1 << 30, "too early"},    {'D', 1 << 20, "too early"},
    };
    memset(names, 'n', sizeof names);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF b = BUF_INIT;
        AUTO_FD fd = -1;
        struct unpacker *u;
        struct pack_entry out;
        struct err e = {0};
        char h[512];
        int r = 1;
        tar_head(h, "x", cases[i].type, "", cases[i].said);
        tar_sum(h);
        buf_add(&b, h, sizeof h);
        size_t len = cases[i].said <= sizeof names ? cases[i].said : 600;
        if (cases[i].type == 'x' && len == 600)
            buf_adds(&b, "999999 comment=");
        buf_add(&b, names, len);
        if (len == cases[i].said) {
            buf_add(&b, (const char[512]){0}, -len % 512);
            tar_add(&b, "f", '0', "", "", 0);
        }
        assert_int_equal(memfd_of("archive", b.data, b.len, &fd, &e), 0);
        assert_int_equal(unpacker_new(fd, &u, &e), 0);
        while (r > 0)
            r = unpacker_next(u, &out, &e);
        assert_int_equal(r, -1);
        if (!strstr(e.text, cases[i].word))
            fail_msg("case %zu: %s", i, e.text);
        unpacker_free(u);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_octal_or_base_256),
        cmocka_unit_test(sums_are_of_signed_or_unsigned_bytes),
        cmocka_unit_test(names_fill_their_fields),
        cmocka_unit_test(pax_says_path_link_size_and_time),
        cmocka_unit_test(pax_values_out_of_bounds_are_none),
        cmocka_unit_test(pax_of_another_form_is_refused),
        cmocka_unit_test(maps_of_holes_are_refused),
        cmocka_unit_test(names_come_from_whoever_says_them),
        cmocka_unit_test(archives_that_lie_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
