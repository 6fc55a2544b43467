/* engine/store: files are kept for their tenant and for a time, survive a restart, and nothing but
 * a whole file can ever be fetched. Each test has a directory of its own. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "engine/store/store_copy.h"
#include "loop/crew.h"
#include "loop/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define ID_A     "11111111-2222-4333-8444-aaaaaaaaaaaa"
#define ID_B     "11111111-2222-4333-8444-bbbbbbbbbbbb"
#define ID_C     "11111111-2222-4333-8444-cccccccccccc"

static char path[64];
static int dir = -1;
static struct loop *loop;
static struct store *store;
static const struct store_options boundless;

static int setup(void **state) {
    (void)state;
    struct err e;
    snprintf(path, sizeof path, "/tmp/test_engine_store.XXXXXX");
    assert_non_null(mkdtemp(path));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_equal(loop_new(&loop, &e), 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    store_close(store);
    store = NULL;
    loop_free(loop);
    DIR *d = fdopendir(dir);
    const struct dirent *entry;
    while ((entry = readdir(d))) {
        if (unlinkat(dir, entry->d_name, 0) < 0)
            unlinkat(dir, entry->d_name, AT_REMOVEDIR);
    }
    closedir(d);
    dir = -1;
    return rmdir(path);
}

static void reopen(struct store_options o) {
    struct err e;
    store_close(store);
    assert_int_equal(store_open(dir, &o, loop, &store, &e), 0);
}

static double real_now(void) {
    return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}

/* How many names there are, besides "." and "..". */
static unsigned names_in_dir(void) {
    DIR *d = opendir(path);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static int exists(const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put_file(const char *name, const char *text) {
    struct err e;
    AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
}

static void put_meta(const char *id, const char *name, unsigned size, double uploaded) {
    char at[64], text[512];
    snprintf(at, sizeof at, "%s.meta.json", id);
    snprintf(text, sizeof text,
             "{\"file_id\":\"%s\",\"filename\":\"%s\",\"size_bytes\":%u,\"upload_time\":%.6f,"
             "\"tenant\":\"t\"}",
             id, name, size, uploaded);
    put_file(at, text);
}

static void put_pair(const char *id, const char *text, double uploaded) {
    put_file(id, text);
    put_meta(id, "by-hand", (unsigned)strlen(text), uploaded);
}

static int add(const char *tenant, const char *name, const char *text, struct store_entry *ret,
               struct err *e) {
    struct store_upload *u;
    size_t half = strlen(text) / 2;
    if (store_begin(store, tenant, &u, e) < 0)
        return -1;
    if (store_append(u, text, half, e) < 0 ||
        store_append(u, text + half, strlen(text) - half, e) < 0) {
        store_abort(u);
        return -1;
    }
    return store_finish(u, name, ret, e);
}

static struct store_entry must_add(const char *name, const char *text) {
    struct err e;
    struct store_entry entry;
    assert_int_equal(add("t", name, text, &entry, &e), 0);
    return entry;
}

static void assert_no_file(const char *tenant, const char *id) {
    struct err e = {0};
    int fd = -1;
    struct store_entry entry;
    assert_int_equal(store_find(store, tenant, id, &entry, &fd, &e), -1);
    assert_string_equal(e.kind, "no_file");
    assert_int_equal(fd, -1);
}

static void assert_holds(const char *id, const char *name, const char *text) {
    struct err e;
    AUTO_FD fd = -1;
    char got[256];
    struct store_entry entry;
    assert_int_equal(store_find(store, "t", id, &entry, &fd, &e), 0);
    assert_string_equal(entry.id, id);
    assert_string_equal(entry.name, name);
    assert_string_equal(entry.tenant, "t");
    assert_int_equal(entry.size, strlen(text));
    assert_int_equal(fd_read_all(fd, got, sizeof got, NULL, &e), 0);
    assert_string_equal(got, text);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    store_entry_done(&entry);
}

static char *repeat(const char *piece, unsigned n) {
    struct buf b = BUF_INIT;
    while (n--)
        buf_adds(&b, piece);
    return buf_take(&b);
}

static void any_name_comes_back_also_after_a_restart(void **state) {
    (void)state;
    char *longest = repeat("x", 1024), *too_long = repeat("x", 1025);
    char *uneven = repeat("\xe6\x95\xb0", 400), *uneven_cut = repeat("\xe6\x95\xb0", 341);
    char *broken = repeat("\xff", 1024), *broken_cut = repeat("\xef\xbf\xbd", 341);
    char *four = repeat("\xf0\x9f\x98\x80", 300), *four_cut = repeat("\xf0\x9f\x98\x80", 256);
    const struct {
        const char *name, *stored;
    } cases[] = {
        {"a.txt", "a.txt"},
        {"", "unnamed"},
        {"\xe6\x95\xb0\xe6\x8d\xae.txt", "\xe6\x95\xb0\xe6\x8d\xae.txt"},
        {"plots/\xf0\x9f\x98\x80/a b.png", "plots/\xf0\x9f\x98\x80/a b.png"},
        {"../../etc/passwd", "../../etc/passwd"},
        {"quote\" back\\slash", "quote\" back\\slash"},
        {"line\nbreak\x01\x7f\xe2\x80\xa8", "line\nbreak\x01\x7f\xe2\x80\xa8"},
        {"bad\xff.txt", "bad\xef\xbf\xbd.txt"},
        {"cut\xe6\x95", "cut\xef\xbf\xbd"},
        {"surrogate\xed\xa0\x80", "surrogate\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {longest, longest},
        {too_long, longest},
        {uneven, uneven_cut},
        {broken, broken_cut},
        {four, four_cut},
    };
    reopen(boundless);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct store_entry entry = must_add(cases[i].name, "hello");
        assert_string_equal(entry.name, cases[i].stored);
        assert_holds(entry.id, cases[i].stored, "hello");
        reopen(boundless);
        assert_holds(entry.id, cases[i].stored, "hello");
        store_entry_done(&entry);
    }
    char *all[] = {longest, too_long, uneven, uneven_cut, broken, broken_cut, four, four_cut};
    for (size_t i = 0; i < COUNT(all); i++)
        free(all[i]);
}

static void a_file_on_disk_is_private_and_named_by_its_id(void **state) {
    (void)state;
    char meta[64];
    struct stat st;
    reopen(boundless);
    struct store_entry entry = must_add("a.txt", "hello");
    snprintf(meta, sizeof meta, "%s.meta.json", entry.id);
    assert_int_equal(fstatat(dir, entry.id, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(fstatat(dir, meta, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(names_in_dir(), 2);
    assert_int_equal(entry.id[14], '4');
    assert_non_null(strchr("89ab", entry.id[19]));
    store_entry_done(&entry);
}

static void an_empty_file_is_a_file(void **state) {
    (void)state;
    reopen(boundless);
    struct store_entry entry = must_add("empty", "");
    reopen(boundless);
    assert_holds(entry.id, "empty", "");
    assert_int_equal(store_usage(store).files, 1);
    assert_int_equal(store_usage(store).bytes, STORE_FILE_COST);
    store_entry_done(&entry);
}

static void empty_files_keep_the_bound(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    struct store_upload *u;
    reopen((struct store_options){.total_max = 3 * STORE_FILE_COST});
    for (int i = 0; i < 2; i++) {
        entry = must_add("empty", "");
        store_entry_done(&entry);
    }
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(add("t", "one too many", "", &entry, &e), -1); /* what is under way counts */
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(names_in_dir(), 5);
    store_abort(u);
    entry = must_add("empty", "");
    store_entry_done(&entry);
    assert_int_equal(add("t", "one too many", "", &entry, &e), -1);
    assert_int_equal(names_in_dir(), 6);
}

static void an_aborted_upload_leaves_nothing(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    reopen(boundless);
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "hello", 5, &e), 0);
    assert_int_equal(names_in_dir(), 1);
    assert_int_equal(store_usage(store).files, 0);
    store_abort(u);
    store_abort(NULL);
    assert_int_equal(names_in_dir(), 0);
}

static void a_deleted_file_is_gone(void **state) {
    (void)state;
    struct err e;
    reopen(boundless);
    struct store_entry one = must_add("one", "1"), two = must_add("two", "22");
    AUTO_FD fd = -1;
    assert_int_equal(store_find(store, "t", one.id, NULL, &fd, &e), 0);
    assert_int_equal(store_delete(store, "t", one.id, &e), 0);
    assert_no_file("t", one.id);
    assert_int_equal(store_delete(store, "t", one.id, &e), -1);
    assert_string_equal(e.kind, "no_file");
    assert_int_equal(names_in_dir(), 2);
    char got[8]; /* whoever was reading reads on */
    assert_int_equal(fd_read_all(fd, got, sizeof got, NULL, &e), 0);
    assert_string_equal(got, "1");
    reopen(boundless);
    assert_no_file("t", one.id);
    assert_holds(two.id, "two", "22");
    store_entry_done(&one);
    store_entry_done(&two);
}

static void assert_lists(const char *tenant, const char *names) {
    AUTO_BUF got = BUF_INIT;
    struct store_cursor c;
    const struct store_entry *e;
    store_list(store, &c);
    for (unsigned looks = 1; !store_list_is_over(&c); looks = 1) {
        if ((e = store_list_next(&c, tenant, &looks)))
            buf_addf(&got, "%s ", e->name);
    }
    store_list_end(&c);
    assert_string_equal(got.data, names);
}

static void a_file_belongs_to_its_tenant(void **state) {
    (void)state;
    struct err e;
    struct store_entry mine, yours;
    reopen(boundless);
    assert_int_equal(add("me", "mine", "1", &mine, &e), 0);
    assert_int_equal(add("you", "yours", "2", &yours, &e), 0);
    for (int round = 0; round < 2; round++) {
        assert_no_file("you", mine.id);
        assert_no_file("", mine.id);
        assert_int_equal(store_delete(store, "you", mine.id, &e), -1);
        assert_string_equal(e.kind, "no_file");
        assert_int_equal(store_find(store, "me", mine.id, NULL, NULL, &e), 0);
        assert_lists("me", "mine ");
        assert_lists("you", "yours ");
        assert_lists("nobody", "");
        assert_int_equal(store_usage(store).files, 2);
        reopen(boundless);
    }
    char *tenant = repeat("x", 256);
    struct store_upload *u;
    assert_int_equal(store_begin(store, tenant, &u, &e), -1);
    free(tenant);
    store_entry_done(&mine);
    store_entry_done(&yours);
}

static void the_list_is_newest_first_also_after_a_restart(void **state) {
    (void)state;
    struct err e;
    reopen(boundless);
    char want[256] = "", name[8], before[256];
    struct store_entry middle = {0};
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "%d", i);
        struct store_entry entry = must_add(name, name);
        if (i == 15) {
            middle = entry;
            continue;
        }
        snprintf(before, sizeof before, "%s", want);
        snprintf(want, sizeof want, "%s %.240s", name, before);
        store_entry_done(&entry);
    }
    assert_int_equal(store_delete(store, "t", middle.id, &e), 0);
    store_entry_done(&middle);
    assert_lists("t", want);
    reopen(boundless);
    assert_lists("t", want);
}

static void only_exact_ids_find_anything(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "x",
        "../x",
        "/etc/passwd",
        "secret",
        ID_A ".meta.json",
        "." ID_A ".part",
        ID_A "a",
        ID_A "/",
        ID_A "\n",
        " " ID_A,
        "./" ID_A,
        "11111111-2222-4333-8444-AAAAAAAAAAAA",
        "11111111222243338444aaaaaaaaaaaa",
        "{" ID_A "}",
        "11111111-2222-4333-8444-aaaaaaaaaaa",
        "11111111-2222-4333-8444-aaaaaaaaaaag",
        "1111111-12222-4333-8444-aaaaaaaaaaaa",
        ID_B,
    };
    struct err e;
    put_pair(ID_A, "hello", real_now());
    put_file("secret", "x");
    reopen(boundless);
    assert_holds(ID_A, "by-hand", "hello");
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_no_file("t", bad[i]);
        assert_int_equal(store_delete(store, "t", bad[i], &e), -1);
        assert_string_equal(e.kind, "no_file");
    }
    assert_int_equal(names_in_dir(), 3);
}

static void a_file_may_be_as_large_as_the_bound_and_no_larger(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    struct store_entry entry;
    reopen((struct store_options){.file_max = 5});
    entry = must_add("fits", "12345");
    store_entry_done(&entry);
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "12345", 5, &e), 0);
    assert_int_equal(store_append(u, "6", 1, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(store_append(u, "", 0, &e), -1); /* once failed, failed */
    e = (struct err){0};
    assert_int_equal(store_finish(u, "x", &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(names_in_dir(), 2);
}

static void all_files_together_keep_the_bound(void **state) {
    (void)state;
    struct err e;
    struct store_upload *u;
    struct store_entry one, entry;
    reopen((struct store_options){.total_max = 2 * STORE_FILE_COST + 10});
    one = must_add("one", "12345");
    assert_int_equal(store_begin(store, "t", &u, &e), 0);
    assert_int_equal(store_append(u, "123", 3, &e), 0);
    assert_int_equal(add("t", "two", "123", &entry, &e), -1); /* what is under way counts */
    assert_string_equal(e.kind, "disk_full");
    store_abort(u);
    entry = must_add("two", "12345");
    store_entry_done(&entry);
    assert_int_equal(add("t", "three", "1", &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(store_delete(store, "t", one.id, &e), 0);
    store_entry_done(&one);
    entry = must_add("three", "1");
    store_entry_done(&entry);
    assert_int_equal(store_usage(store).files, 2);
    assert_int_equal(store_usage(store).bytes, 2 * STORE_FILE_COST + 6);
    reopen((struct store_options){.total_max = 3}); /* a lower bound removes nothing */
    assert_int_equal(store_usage(store).bytes, 2 * STORE_FILE_COST + 6);
    assert_int_equal(add("t", "four", "1", &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
}

static void what_is_half_done_is_removed_at_the_start(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"." ID_A ".part", "half"},
        {"." ID_A ".meta.part", "{\"file_id\":"},
        {ID_A, "data without meta"},
        {ID_A ".meta.json", "{\"file_id\":\"" ID_A "\",\"filename\":\"no data\",\"size_bytes\":4,"
                            "\"upload_time\":1.5,\"tenant\":\"t\"}"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_file(cases[i].name, cases[i].text);
        reopen(boundless);
        assert_int_equal(names_in_dir(), 0);
        assert_int_equal(store_usage(store).files, 0);
    }
}

static void a_crash_between_the_two_renames_is_undone(void **state) {
    (void)state;
    put_meta(ID_A, "x", 4, real_now());
    put_file("." ID_A ".part", "1234");
    reopen(boundless);
    assert_int_equal(names_in_dir(), 0);
}

static void a_file_whose_meta_is_not_whole_is_removed(void **state) {
    (void)state;
    char *big = repeat(" ", 20000);
    const char *const metas[] = {
        "",
        "{",
        "[]",
        "{}",
        "\xff",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5",
        "{\"file_id\":\"" ID_B "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":5,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":-4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":\"4\",\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":7,\"size_bytes\":4,\"upload_time\":1.5}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4}",
        "{\"file_id\":\"" ID_A "\",\"filename\":\"x\",\"size_bytes\":4,\"upload_time\":1.5,"
        "\"tenant\":[]}",
        big,
    };
    for (size_t i = 0; i < COUNT(metas); i++) {
        put_file(ID_A, "1234");
        put_file(ID_A ".meta.json", metas[i]);
        reopen(boundless);
        assert_int_equal(names_in_dir(), 0);
        assert_no_file("t", ID_A);
    }
    free(big);
}

static void a_meta_without_a_tenant_is_the_empty_tenants(void **state) {
    (void)state;
    struct err e;
    put_file(ID_A, "1234");
    put_file(ID_A ".meta.json", "{\"file_id\": \"" ID_A "\", \"filename\": \"x\", "
                                "\"size_bytes\": 4, \"upload_time\": 1700000000}");
    reopen(boundless);
    assert_int_equal(store_find(store, "", ID_A, NULL, NULL, &e), 0);
    assert_no_file("t", ID_A);
}

static void what_is_not_ours_stays(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "README",    ".hidden",    "notes.meta.json", "11111111-2222-4333-8444-AAAAAAAAAAAA",
        ID_A ".txt", ID_A ".part", "." ID_A,          "." ID_A ".meta.json",
        "x" ID_A,
    };
    for (size_t i = 0; i < COUNT(foreign); i++)
        put_file(foreign[i], "1234");
    assert_int_equal(mkdirat(dir, ID_B, 0700), 0);
    assert_int_equal(mkdirat(dir, ID_C ".meta.json", 0700), 0);
    reopen((struct store_options){.ttl_s = 1});
    assert_int_equal(names_in_dir(), COUNT(foreign) + 2);
    for (size_t i = 0; i < COUNT(foreign); i++)
        assert_true(exists(foreign[i]));
    assert_int_equal(store_usage(store).files, 0);
}

static void symlinks_are_not_followed(void **state) {
    (void)state;
    put_file("target", "1234");
    put_meta("target", "x", 4, real_now()); /* target.meta.json */
    /* in place of the data */
    put_meta(ID_A, "x", 4, real_now());
    assert_int_equal(symlinkat("target", dir, ID_A), 0);
    /* in place of the meta */
    put_file(ID_B, "1234");
    assert_int_equal(symlinkat("target.meta.json", dir, ID_B ".meta.json"), 0);
    reopen(boundless);
    assert_no_file("t", ID_A);
    assert_no_file("t", ID_B);
    assert_int_equal(store_usage(store).files, 0);
    assert_true(exists("target") && exists("target.meta.json"));
    assert_true(exists(ID_A) && exists(ID_B ".meta.json"));
    assert_false(exists(ID_A ".meta.json") || exists(ID_B));
}

static void a_file_that_was_exchanged_behind_our_back_is_gone(void **state) {
    (void)state;
    static const char *const ids[] = {ID_A, ID_B, ID_C};
    put_file("target", "1234");
    for (size_t i = 0; i < COUNT(ids); i++)
        put_pair(ids[i], "1234", real_now());
    reopen(boundless);
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_int_equal(unlinkat(dir, ids[i], 0), 0);
    assert_int_equal(symlinkat("target", dir, ID_A), 0);
    put_file(ID_B, "longer than it was");
    assert_int_equal(mkfifoat(dir, ID_C, 0600), 0);
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_no_file("t", ids[i]);
    assert_int_equal(store_usage(store).files, 0);
}

static void old_files_are_removed_at_the_start(void **state) {
    (void)state;
    put_pair(ID_A, "old", real_now() - 3601);
    put_pair(ID_B, "young", real_now() - 3000);
    put_pair(ID_C, "from the future", real_now() + 1e6);
    reopen((struct store_options){.ttl_s = 3600});
    assert_no_file("t", ID_A);
    assert_holds(ID_B, "by-hand", "young");
    assert_holds(ID_C, "by-hand", "from the future");
    assert_int_equal(names_in_dir(), 4);
    reopen(boundless); /* without a bound age does not matter */
    assert_int_equal(store_usage(store).files, 2);
}

static void a_new_file_is_the_newest_even_if_the_clock_was_set_back(void **state) {
    (void)state;
    put_pair(ID_A, "from the future", real_now() + 1e6);
    reopen(boundless);
    struct store_entry entry = must_add("new", "1");
    assert_lists("t", "new by-hand ");
    assert_true(entry.uploaded < real_now() + 1);
    store_entry_done(&entry);
}

struct waiter {
    struct timer timer;
    uint64_t until_ns;
    unsigned files;
};

/* Looks at what the store's own timer has done. */
static void look(struct timer *t) {
    struct waiter *w = t->arg;
    if (store_usage(store).files <= w->files || now_ns() > w->until_ns)
        loop_stop(loop);
    else
        loop_timer(loop, t, now_ns() + 2000000u);
}

static void wait_until_files(unsigned files) {
    struct err e;
    struct waiter w = {.until_ns = now_ns() + 20000000000u, .files = files};
    w.timer = (struct timer){.fn = look, .arg = &w};
    loop_timer(loop, &w.timer, 0);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_int_equal(store_usage(store).files, files);
}

static void a_file_is_removed_when_its_time_is_over(void **state) {
    (void)state;
    double now = real_now();
    put_pair(ID_A, "first", now - 100 + 0.3);
    put_pair(ID_B, "second", now - 100 + 0.4);
    put_pair(ID_C, "much later", now);
    reopen((struct store_options){.ttl_s = 100});
    wait_until_files(1);
    assert_int_equal(names_in_dir(), 2);
    assert_holds(ID_C, "by-hand", "much later");
}

static void the_first_upload_sets_the_timer(void **state) {
    (void)state;
    reopen((struct store_options){.ttl_s = 1});
    struct store_entry entry = must_add("x", "1");
    store_entry_done(&entry);
    wait_until_files(0);
    assert_int_equal(names_in_dir(), 0);
}

/* A time in the future is taken for the time of the start: however slow the disk is, these files
 * live for a second after it. */
static const double at_start = 1e11;

static void many_files_that_expire_at_once_all_go(void **state) {
    (void)state;
    char id[40];
    for (unsigned i = 0; i < 600; i++) { /* more than one wake-up removes */
        snprintf(id, sizeof id, "11111111-2222-4333-8444-%012x", i);
        put_pair(id, "x", at_start);
    }
    reopen((struct store_options){.ttl_s = 1});
    assert_int_equal(store_usage(store).files, 600);
    wait_until_files(0);
    assert_int_equal(names_in_dir(), 0);
}

static void an_old_file_is_gone_before_the_timer_fires(void **state) {
    (void)state;
    put_pair(ID_A, "1234", at_start);
    put_pair(ID_B, "1234", at_start);
    put_pair(ID_C, "1234", at_start);
    reopen((struct store_options){.ttl_s = 1, .total_max = 3 * STORE_FILE_COST + 12});
    assert_int_equal(store_usage(store).files, 3);
    double over = real_now() + 1;
    while (real_now() < over) /* the loop does not run */
        usleep(10000);
    assert_lists("t", "");
    assert_no_file("t", ID_A);
    assert_int_equal(store_usage(store).files, 2);
    char *text = repeat("x", 2 * STORE_FILE_COST + 12);
    struct store_entry entry = must_add("new", text); /* the room of the old ones */
    free(text);
    assert_int_equal(store_usage(store).files, 1);
    assert_int_equal(names_in_dir(), 2);
    store_entry_done(&entry);
}

static struct store_copy_request copy_request(const char *name, int *fd, uint64_t size) {
    return (struct store_copy_request){.tenant = "t", .name = name, .fd = fd, .size = size};
}

static int copy_of(const char *name, int fd, uint64_t size, struct store_entry *ret,
                   struct err *e) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const struct store_copy_request q = copy_request(name, &own, size);
    int r = store_copy(store, &q, ret, e);
    assert_int_equal(own, -1);
    return r;
}

static void a_copy_has_the_first_bytes(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC); /* another file system: by hand */
    assert_int_equal(fd_write_all(fd, "hello world", 11, &e), 0);
    put_file("source", "hello world"); /* the same one */
    AUTO_FD same = openat(dir, "source", O_RDONLY | O_CLOEXEC);
    const int fds[] = {fd, same};
    reopen(boundless);
    for (size_t i = 0; i < COUNT(fds); i++) {
        static const char *const want[] = {"", "hello", "hello world"};
        for (size_t k = 0; k < COUNT(want); k++) {
            assert_int_equal(copy_of("c", fds[i], strlen(want[k]), &entry, &e), 0);
            assert_holds(entry.id, "c", want[k]);
            store_entry_done(&entry);
        }
        assert_int_equal(copy_of("c", fds[i], 12, &entry, &e), -1);
    }
    assert_int_equal(store_usage(store).files, 6);
    assert_int_equal(names_in_dir(), 13);
}

static void a_large_copy_is_whole(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    size_t len = 1000003;
    char *bytes = malloc(len + 1), *got = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(fd_write_all(fd, bytes, len, &e), 0);
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, len, &entry, &e), 0);
    AUTO_FD found = -1;
    size_t n;
    assert_int_equal(store_find(store, "t", entry.id, NULL, &found, &e), 0);
    assert_int_equal(fd_read_all(found, got, len + 1, &n, &e), 0);
    assert_int_equal(n, len);
    assert_memory_equal(got, bytes, len);
    store_entry_done(&entry);
    free(bytes);
    free(got);
}

#define HOLE (8u << 20)

/* Data, a hole of HOLE bytes, data, and a hole at the end. */
static int file_with_holes(void) {
    int fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, "head", 4, 0), 4);
    assert_int_equal(pwrite(fd, "tail", 4, HOLE), 4);
    assert_int_equal(ftruncate(fd, 2 * HOLE), 0);
    return fd;
}

static void assert_has_holes(const char *id) {
    struct err e;
    struct stat st;
    char got[5] = "";
    AUTO_FD fd = -1;
    assert_int_equal(store_find(store, "t", id, NULL, &fd, &e), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 2 * HOLE);
    assert_true(st.st_blocks * 512 < HOLE);
    assert_int_equal(pread(fd, got, 4, 0), 4);
    assert_string_equal(got, "head");
    assert_int_equal(pread(fd, got, 4, HOLE), 4);
    assert_string_equal(got, "tail");
}

static void holes_stay_holes(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    AUTO_FD fd = file_with_holes();
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, 2 * HOLE, &entry, &e), 0);
    assert_has_holes(entry.id);
    store_entry_done(&entry);
    assert_int_equal(copy_of("c", fd, 2 * HOLE + 1, &entry, &e), -1); /* it has not that many */
    assert_int_equal(store_usage(store).files, 1);
}

static void on_copied(void *arg, const struct store_entry *entry, const struct err *why) {
    snprintf(arg, STORE_ID_LEN + 1, "%s", why ? "failed" : entry->id);
    loop_stop(loop);
}

static void a_copy_is_made_beside_the_loop(void **state) {
    (void)state;
    struct err e;
    struct crew *crew;
    struct store_copy *copy;
    char id[STORE_ID_LEN + 1] = "";
    int fd = file_with_holes(), short_one = file_with_holes();
    struct store_copy_request q = copy_request("c", &fd, 2 * HOLE);
    q.done = on_copied;
    q.arg = id;
    reopen(boundless);
    assert_int_equal(crew_new(loop, 1, &crew, &e), 0);
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(fd, -1);
    assert_string_equal(id, "");
    assert_int_equal(loop_run(loop, &e), 0);
    assert_has_holes(id);
    q.fd = &short_one;
    q.size = 3 * HOLE;
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(loop_run(loop, &e), 0);
    assert_string_equal(id, "failed");
    assert_int_equal(names_in_dir(), 2);
    crew_free(crew);
}

static void a_copy_that_is_left_leaves_nothing(void **state) {
    (void)state;
    struct err e;
    struct crew *crew;
    struct store_copy *copy;
    char id[STORE_ID_LEN + 1] = "";
    int fd = file_with_holes(), other = file_with_holes();
    struct store_copy_request q = copy_request("c", &fd, 2 * HOLE);
    q.done = on_copied;
    q.arg = id;
    reopen((struct store_options){.total_max = 2 * HOLE + STORE_FILE_COST});
    assert_int_equal(crew_new(loop, 1, &crew, &e), 0);
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    store_copy_leave(copy);
    assert_int_equal(names_in_dir(), 0);
    q.fd = &other; /* its room is free again */
    assert_int_equal(store_copy_begin(store, crew, &q, &copy, &e), 0);
    assert_int_equal(loop_run(loop, &e), 0); /* one thread: the first is through as well */
    assert_has_holes(id);
    crew_free(crew);
}

static void a_copy_keeps_the_bounds_and_wants_a_regular_file(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    int ends[2];
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 100), 0);
    reopen((struct store_options){.file_max = 50, .total_max = 2 * STORE_FILE_COST + 60});
    assert_int_equal(copy_of("c", fd, 51, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(copy_of("c", fd, UINT64_MAX, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(copy_of("c", fd, 50, NULL, &e), 0);
    assert_int_equal(copy_of("c", fd, 11, &entry, &e), -1);
    assert_string_equal(e.kind, "disk_full");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* nobody writes: reading would block */
    assert_int_equal(copy_of("c", ends[0], 5, &entry, &e), -1);
    fd_close_all(ends, 2);
    assert_int_equal(names_in_dir(), 2);
    reopen(boundless);
    assert_int_equal(copy_of("c", fd, UINT64_MAX, &entry, &e), -1);
    assert_string_equal(e.kind, "file_too_large");
}

static void a_second_store_in_the_directory_is_refused(void **state) {
    (void)state;
    struct err e;
    struct store *second;
    reopen(boundless);
    assert_int_equal(store_open(dir, &boundless, loop, &second, &e), -1);
    assert_int_equal(e.code, EBUSY);
}

static void a_directory_that_cannot_be_opened_is_an_error(void **state) {
    (void)state;
    struct err e;
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    assert_int_equal(store_open(fd, &boundless, loop, &store, &e), -1);
    assert_null(store);
}

static void what_the_system_lets_nobody_write_is_too_large(void **state) {
    (void)state;
    struct err e;
    struct store_entry entry;
    struct rlimit before;
    reopen(boundless);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit low = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    char *text = repeat("x", 1500);
    int r = add("t", "x", text, &entry, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    free(text);
    assert_int_equal(r, -1);
    assert_string_equal(e.kind, "file_too_large");
    assert_int_equal(names_in_dir(), 0);
}

#define CANNOT_MOUNT 77

/* Over the test's directory, in namespaces of our own. */
static int mount_small_disk(void) {
    char uids[32], gids[32];
    struct err e;
    snprintf(uids, sizeof uids, "0 %u 1", getuid());
    snprintf(gids, sizeof gids, "0 %u 1", getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/uid_map", uids, &e) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", &e) < 0 ||
        file_write_at(AT_FDCWD, "/proc/self/gid_map", gids, &e) < 0)
        return -1;
    return mount("store", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=64");
}

/* In a child with a mount namespace of its own: exits 0 when all is as it should be. */
static int fill_a_small_disk(void) {
    struct err e = {0};
    struct store_entry entry;
    if (mount_small_disk() < 0)
        return CANNOT_MOUNT;
    AUTO_FD small = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store_open(small, &boundless, loop, &store, &e) < 0)
        return 1;
    char *text = repeat("x", 100000);
    AUTO_FD fd = memfd_create("x", MFD_CLOEXEC);
    if (fd_write_all(fd, text, 100000, &e) < 0)
        return 2;
    if (add("t", "x", text, &entry, &e) == 0 || strcmp(e.kind, "disk_full") != 0)
        return 3;
    e = (struct err){0};
    if (copy_of("x", fd, 100000, &entry, &e) == 0 || strcmp(e.kind, "disk_full") != 0)
        return 4;
    if (names_in_dir() != 0 || copy_of("x", fd, 30000, NULL, &e) < 0)
        return 5;
    e = (struct err){0};
    for (int i = 0; i < 64; i++) { /* until the inodes are gone, some of them in mid-upload */
        struct store_upload *u;
        if (store_begin(store, "t", &u, &e) < 0 || store_finish(u, "x", NULL, &e) < 0)
            break;
    }
    if (strcmp(e.kind, "disk_full") != 0 || names_in_dir() != store_usage(store).files * 2)
        return 6;
    store_close(store);
    free(text);
    return 0;
}

static void a_full_disk_is_said_and_leaves_nothing_behind(void **state) {
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fill_a_small_disk());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_MOUNT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_name_comes_back_also_after_a_restart),
        TEST(a_file_on_disk_is_private_and_named_by_its_id),
        TEST(an_empty_file_is_a_file),
        TEST(empty_files_keep_the_bound),
        TEST(an_aborted_upload_leaves_nothing),
        TEST(a_deleted_file_is_gone),
        TEST(a_file_belongs_to_its_tenant),
        TEST(the_list_is_newest_first_also_after_a_restart),
        TEST(only_exact_ids_find_anything),
        TEST(a_file_may_be_as_large_as_the_bound_and_no_larger),
        TEST(all_files_together_keep_the_bound),
        TEST(what_is_half_done_is_removed_at_the_start),
        TEST(a_crash_between_the_two_renames_is_undone),
        TEST(a_file_whose_meta_is_not_whole_is_removed),
        TEST(a_meta_without_a_tenant_is_the_empty_tenants),
        TEST(what_is_not_ours_stays),
        TEST(symlinks_are_not_followed),
        TEST(a_file_that_was_exchanged_behind_our_back_is_gone),
        TEST(old_files_are_removed_at_the_start),
        TEST(a_new_file_is_the_newest_even_if_the_clock_was_set_back),
        TEST(a_file_is_removed_when_its_time_is_over),
        TEST(the_first_upload_sets_the_timer),
        TEST(many_files_that_expire_at_once_all_go),
        TEST(an_old_file_is_gone_before_the_timer_fires),
        TEST(a_copy_has_the_first_bytes),
        TEST(a_large_copy_is_whole),
        TEST(holes_stay_holes),
        TEST(a_copy_is_made_beside_the_loop),
        TEST(a_copy_that_is_left_leaves_nothing),
        TEST(a_copy_keeps_the_bounds_and_wants_a_regular_file),
        TEST(a_second_store_in_the_directory_is_refused),
        TEST(a_directory_that_cannot_be_opened_is_an_error),
        TEST(what_the_system_lets_nobody_write_is_too_large),
        TEST(a_full_disk_is_said_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
