/* keys/keys: a file of keys is read strictly, a secret is found by its hash only, and a file is
 * replaced as a whole. */

#include "base/fd.h"
#include "keys/keys.h"
#include "keys/keys_file.h"
#include "keys/keys_text.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ID    "\"id\":\"key_0123456789abcdef\""
#define NAME  "\"name\":\"alice\""
#define HASH  "\"sha256\":\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""
#define WHEN  "\"created\":1731715200.0"
#define KEY   ID "," NAME "," HASH "," WHEN
#define TWO   "{\"id\":\"key_0123456789abcdee\"," NAME "," WHEN ",\"sha256\":\"" ZEROS "\"}"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* Every test has a directory of its own. */
static char path[64];
static int dir = -1;

static int enter(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test-keys-XXXXXX");
    dir = mkdtemp(path) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return dir >= 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    char command[128];
    fd_close(&dir);
    snprintf(command, sizeof command, "rm -r '%s'", path);
    return system(command);
}

static void put(const char *name, const char *text) {
    AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void add(struct keys *k, const char *name, char secret[KEYS_SECRET_SIZE]) {
    struct key made;
    struct err e;
    assert_int_equal(key_make(name, NULL, NULL, &made, secret, &e), 0);
    assert_int_equal(keys_add_take(k, &made, &e), 0);
    assert_null(made.name);
}

static void lists_that_are_refused_say_where(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "JSON"},
        {"[]", "object"},
        {"{}", "keys is missing"},
        {"{\"keys\":{}}", "keys must be an array"},
        {"{\"keys\":[],\"more\":1}", "no member \"more\""},
        {"{\"keys\":[],\"keys\":[]}", "JSON"},
        {"{\"keys\":[]} x", "JSON"},
        {"{\"keys\":[1]}", "keys[0]: must be an object"},
        {"{\"keys\":[{" KEY "},null]}", "keys[1]: must be an object"},
        {"{\"keys\":[{" KEY ",\"secret\":\"x\"}]}", "keys[0]: there is no member \"secret\""},
        {"{\"keys\":[{" KEY ",\"a\\u0001\":1}]}", "\"a\\x01\""},
        {"{\"keys\":[{" NAME "," HASH "," WHEN "}]}", "keys[0]: id is missing"},
        {"{\"keys\":[{" ID "," HASH "," WHEN "}]}", "keys[0]: name is missing"},
        {"{\"keys\":[{" ID "," NAME "," WHEN "}]}", "keys[0]: sha256 is missing"},
        {"{\"keys\":[{" ID "," NAME "," HASH "}]}", "keys[0]: created is missing"},
        {"{\"keys\":[{\"id\":7," NAME "," HASH "," WHEN "}]}", "id must be a string"},
        {"{\"keys\":[{\"id\":\"\"," NAME "," HASH "," WHEN "}]}", "id must be key_"},
        {"{\"keys\":[{\"id\":\"kez_0123456789abcdef\"," NAME "," HASH "," WHEN "}]}", "id must"},
        {"{\"keys\":[{\"id\":\"key_0123456789abcdeF\"," NAME "," HASH "," WHEN "}]}", "id must"},
        {"{\"keys\":[{\"id\":\"key_0123456789abcdef0\"," NAME "," HASH "," WHEN "}]}", "id must"},
        {"{\"keys\":[{" ID ",\"name\":\"\"," HASH "," WHEN "}]}", "name is \"\"; it must be"},
        {"{\"keys\":[{" ID ",\"name\":\"a b\"," HASH "," WHEN "}]}", "name is \"a b\""},
        {"{\"keys\":[{" ID ",\"name\":\"a\\n\"," HASH "," WHEN "}]}", "name is \"a\\x0a\""},
        {"{\"keys\":[{" ID ",\"name\":\"a\\u0000\"," HASH "," WHEN "}]}", "JSON"},
        {"{\"keys\":[{" ID ",\"name\":\"\xc3\xa9\"," HASH "," WHEN "}]}", "name is"},
        {"{\"keys\":[{" ID ",\"name\":\"" ZEROS "0\"," HASH "," WHEN "}]}", "1 to 64"},
        {"{\"keys\":[{" KEY ",\"tenant\":\"\"}]}", "tenant is \"\""},
        {"{\"keys\":[{" KEY ",\"tenant\":null}]}", "tenant must be a string"},
        {"{\"keys\":[{" KEY ",\"tenant\":\"a/b\"}]}", "tenant is \"a/b\""},
        {"{\"keys\":[{" ID "," NAME ",\"sha256\":\"00\"," WHEN "}]}", "sha256 must be 64"},
        {"{\"keys\":[{" ID "," NAME ",\"sha256\":\"" ZEROS "00\"," WHEN "}]}", "sha256 must"},
        {"{\"keys\":[{" ID "," NAME "," HASH ",\"created\":\"1\"}]}", "created must be a number"},
        {"{\"keys\":[{" ID "," NAME "," HASH ",\"created\":-1}]}", "created must"},
        {"{\"keys\":[{" ID "," NAME "," HASH ",\"created\":1e300}]}", "created must"},
        {"{\"keys\":[{" KEY ",\"limits\":null}]}", "limits must be an object"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"x\":1}}]}", "keys[0]: limits: there is no member"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"concurrent\":1.5}}]}", "concurrent must be a whole"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"concurrent\":0}}]}", "concurrent is 0"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"concurrent\":-1}}]}", "concurrent is -1"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"cpu_seconds_per_minute\":1000001}}]}",
         "limits: cpu_seconds_per_minute is"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"requests_per_second\":0}}]}", "requests_per_second is"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"requests_per_second\":1e9}}]}",
         "requests_per_second is"},
        {"{\"keys\":[{" KEY ",\"limits\":{\"requests_per_second\":\"1\"}}]}",
         "requests_per_second must be a number"},
        {"{\"keys\":[" TWO ",{" KEY "},{" ID "," NAME "," WHEN ",\"sha256\":\"1" ZEROS "\"}]}",
         "keys[2]: sha256 must"},
        {"{\"keys\":[{" KEY "}," TWO ",{" KEY "}]}", "keys[2]: id is the same as that of keys[0]"},
        {"{\"keys\":[{" KEY "},{\"id\":\"key_0123456789abcdee\"," NAME "," WHEN "," HASH "}]}",
         "keys[1]: sha256 is the same as that of keys[0]"},
        {"{\"keys\":[{" KEY ",\"rights\":{}}]}", "keys[0]: rights must be a list"},
        {"{\"keys\":[{" KEY ",\"rights\":[1]}]}", "rights[0] must be a string"},
        {"{\"keys\":[{" KEY ",\"rights\":[\"profiles\",\"all\"]}]}",
         "rights[1]: there is no right \"all\""},
        {"{\"keys\":[[[[[]]]]]}", "nested"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct keys k = {0};
        struct err e = {0};
        if (keys_parse(cases[i].text, strlen(cases[i].text), &k, &e) == 0)
            fail_msg("accepted: %s", cases[i].text);
        if (strcmp(e.kind, "bad_keys") != 0 || !strstr(e.text, cases[i].says))
            fail_msg("%s: %s: %s", cases[i].text, e.kind, e.text);
    }
}

static void a_key_is_read_with_all_it_has(void **state) {
    (void)state;
    static const char text[] =
        "{\"keys\":[{" KEY ",\"tenant\":\"Team_a.1@x-y\",\"limits\":{\"requests_per_second\":0.5,"
        "\"concurrent\":4,\"cpu_seconds_per_minute\":60}}," TWO "]}";
    AUTO_KEYS k = {0};
    struct err e;
    assert_int_equal(keys_parse(text, strlen(text), &k, &e), 0);
    assert_int_equal(k.n, 2);
    assert_string_equal(k.items[0].id, "key_0123456789abcdef");
    assert_string_equal(k.items[0].name, "alice");
    assert_string_equal(k.items[0].tenant, "Team_a.1@x-y");
    assert_true(k.items[0].created == 1731715200.0);
    assert_true(k.items[0].limits.requests_per_second == 0.5);
    assert_int_equal(k.items[0].limits.concurrent, 4);
    assert_int_equal(k.items[0].limits.cpu_seconds_per_minute, 60);
    /* Without a tenant the name is one, without limits there are none. */
    assert_string_equal(k.items[1].tenant, "alice");
    assert_true(k.items[1].limits.requests_per_second == 0);
    assert_int_equal(k.items[1].limits.concurrent, 0);
    /* The hash is SHA-256 of "abc", by the book. */
    assert_ptr_equal(keys_find(&k, "abc", 3), &k.items[0]);
    assert_null(keys_find(&k, "abc", 2));
    assert_null(keys_find(&k, "", 0));
}

static void the_list_has_a_largest_length(void **state) {
    (void)state;
    for (unsigned n = KEYS_MAX; n <= KEYS_MAX + 1; n++) {
        AUTO_BUF b = BUF_INIT;
        AUTO_KEYS k = {0};
        struct err e;
        buf_adds(&b, "{\"keys\":[");
        for (unsigned i = 0; i < n; i++)
            buf_addf(&b,
                     "%s{\"id\":\"key_%016x\",\"name\":\"n\",\"sha256\":\"%064x\",\"created\":0}",
                     i ? "," : "", i, i);
        buf_adds(&b, "]}");
        assert_int_equal(keys_parse(b.data, b.len, &k, &e), n > KEYS_MAX ? -1 : 0);
        if (n > KEYS_MAX) {
            assert_non_null(strstr(e.text, "10001"));
            continue;
        }
        struct key more;
        char secret[KEYS_SECRET_SIZE];
        assert_int_equal(key_make("n", NULL, NULL, &more, secret, &e), 0);
        assert_int_equal(keys_add_take(&k, &more, &e), -1);
        assert_string_equal(e.kind, "too_many_keys");
        key_done(&more);
    }
}

static void a_secret_opens_its_own_key_only(void **state) {
    (void)state;
    AUTO_KEYS k = {0};
    char secrets[5][KEYS_SECRET_SIZE];
    for (size_t i = 0; i < 5; i++)
        add(&k, "same", secrets[i]);
    for (size_t i = 0; i < 5; i++) {
        size_t len = strlen(secrets[i]);
        assert_int_equal(len, 47);
        assert_int_equal(strncmp(secrets[i], "clk_", 4), 0);
        assert_int_equal(strspn(secrets[i] + 4,
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-_"),
                         43);
        assert_ptr_equal(keys_find(&k, secrets[i], len), &k.items[i]);
        assert_null(keys_find(&k, secrets[i], len - 1));
        assert_null(keys_find(&k, secrets[i], len + 1));
        secrets[i][10] ^= 1;
        assert_null(keys_find(&k, secrets[i], len));
        secrets[i][10] ^= 1;
    }
    keys_remove(&k, 2);
    assert_null(keys_find(&k, secrets[2], 47));
    assert_ptr_equal(keys_find(&k, secrets[4], 47), &k.items[3]);
    keys_remove(&k, 3);
    assert_null(keys_find(&k, secrets[4], 47));
    keys_done(&k);
    assert_null(keys_find(&k, secrets[0], 47));
}

static void odd_names_and_limits_make_no_key(void **state) {
    (void)state;
    static const struct {
        const char *name, *tenant;
        struct key_limits limits;
        const char *says;
    } cases[] = {
        {"", NULL, {0}, "name is \"\""},
        {"a b", NULL, {0}, "name is \"a b\"; it must be 1 to 64"},
        {"a\x1b", NULL, {0}, "name is \"a\\x1b\""},
        {ZEROS "0", NULL, {0}, "name is"},
        {"a", "", {0}, "tenant is \"\""},
        {"a", "../x", {0}, "tenant is \"../x\""},
        {"a", NULL, {.requests_per_second = NAN}, "requests_per_second"},
        {"a", NULL, {.requests_per_second = -1}, "requests_per_second is -1"},
        {"a", NULL, {.requests_per_second = 0.0001}, "requests_per_second"},
        {"a", NULL, {.concurrent = KEYS_LIMIT_MAX + 1}, "concurrent"},
        {"a", NULL, {.cpu_seconds_per_minute = UINT32_MAX}, "cpu_seconds_per_minute"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct key k;
        char secret[KEYS_SECRET_SIZE];
        struct err e = {0};
        if (key_make(cases[i].name, cases[i].tenant, &cases[i].limits, &k, secret, &e) == 0)
            fail_msg("made: %s", cases[i].says);
        if (strcmp(e.kind, "bad_value") != 0 || !strstr(e.text, cases[i].says))
            fail_msg("%s: %s", cases[i].says, e.text);
    }
}

static void what_is_written_is_read_again(void **state) {
    (void)state;
    AUTO_KEYS k = {0}, again = {0};
    char secret[KEYS_SECRET_SIZE];
    struct err e;
    bool there = true;
    assert_int_equal(keys_read(dir, "keys.json", &again, &there, &e), 0);
    assert_false(there);
    assert_int_equal(again.n, 0);

    const struct key_limits limits = {0.125, 3, 7};
    struct key made;
    assert_int_equal(key_make(ZEROS, "t", &limits, &made, secret, &e), 0);
    assert_int_equal(keys_add_take(&k, &made, &e), 0);
    add(&k, "b", secret);
    assert_int_equal(keys_write(dir, "keys.json", &k, &e), 0);
    assert_int_equal(keys_read(dir, "keys.json", &again, &there, &e), 0);
    assert_true(there);
    assert_int_equal(again.n, 2);
    assert_string_equal(again.items[0].name, ZEROS);
    assert_true(again.items[0].limits.requests_per_second == 0.125);
    assert_int_equal(again.items[0].limits.cpu_seconds_per_minute, 7);
    assert_true(again.items[1].created == k.items[1].created);
    assert_ptr_equal(keys_find(&again, secret, strlen(secret)), &again.items[1]);

    AUTO_BUF text = BUF_INIT;
    keys_encode(&again, &text);
    assert_null(strstr(text.data, secret));
    /* An empty list is a file too: it lets nobody in. */
    keys_done(&k);
    keys_done(&again);
    assert_int_equal(keys_write(dir, "keys.json", &k, &e), 0);
    assert_int_equal(keys_read(dir, "keys.json", &again, &there, &e), 0);
    assert_true(there);
    assert_int_equal(again.n, 0);
}

static void a_file_keeps_its_owner_and_gets_its_mode(void **state) {
    (void)state;
    struct keys none = {0};
    struct stat st;
    struct err e;
    mode_t mask = umask(0077);
    put("keys.json", "{\"keys\":[]}");
    if (geteuid() == 0)
        assert_int_equal(fchownat(dir, "keys.json", 12345, 54321, 0), 0);
    put(".keys.json.new", "left by one who was killed");
    assert_int_equal(keys_write(dir, "keys.json", &none, &e), 0);
    umask(mask);
    assert_int_equal(fstatat(dir, "keys.json", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_uid, geteuid() == 0 ? 12345 : geteuid());
    if (geteuid() == 0)
        assert_int_equal(st.st_gid, 54321);
    assert_int_equal(faccessat(dir, ".keys.json.new", F_OK, 0), -1);
}

static void only_regular_files_are_used(void **state) {
    (void)state;
    AUTO_KEYS k = {0};
    bool there;
    struct err e;
    assert_int_equal(mkdirat(dir, "d", 0700), 0);
    assert_int_equal(keys_read(dir, "d", &k, &there, &e), -1);
    assert_string_equal(e.kind, "is_directory");
    assert_int_equal(keys_write(dir, "d", &k, &e), -1);
    assert_int_equal(mkfifoat(dir, "p", 0600), 0);
    assert_int_equal(keys_read(dir, "p", &k, &there, &e), -1);
    assert_string_equal(e.kind, "not_readable");
    /* A link may lead to the file for a reader, but is not replaced by a file. */
    put("real", "{\"keys\":[]}");
    assert_int_equal(symlinkat("real", dir, "link"), 0);
    assert_int_equal(keys_read(dir, "link", &k, &there, &e), 0);
    assert_true(there);
    assert_int_equal(keys_write(dir, "link", &k, &e), -1);
    assert_string_equal(e.kind, "output_failed");
}

static void a_file_that_is_too_large_is_refused(void **state) {
    (void)state;
    AUTO_FD fd = openat(dir, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, KEYS_FILE_MAX + 1), 0);
    struct keys k;
    bool there;
    struct err e;
    assert_int_equal(keys_read(dir, "big", &k, &there, &e), -1);
    assert_string_equal(e.kind, "bad_keys");
    assert_non_null(strstr(e.text, "big"));
    /* The largest that is allowed is read, and found not to be JSON. */
    assert_int_equal(ftruncate(fd, KEYS_FILE_MAX), 0);
    assert_int_equal(keys_read(dir, "big", &k, &there, &e), -1);
    assert_non_null(strstr(e.text, "JSON"));
}

#define WRITERS 4
#define ROUNDS  25

static _Noreturn void writer(void) {
    for (int i = 0; i < ROUNDS; i++) {
        AUTO_FD lock = -1;
        AUTO_KEYS k = {0};
        struct key made;
        char secret[KEYS_SECRET_SIZE];
        bool there;
        struct err e;
        if (keys_lock(dir, "keys.json", &lock, &e) < 0 ||
            keys_read(dir, "keys.json", &k, &there, &e) < 0 ||
            key_make("n", NULL, NULL, &made, secret, &e) < 0 || keys_add_take(&k, &made, &e) < 0 ||
            keys_write(dir, "keys.json", &k, &e) < 0)
            _exit(1);
    }
    _exit(0);
}

static void writers_at_once_lose_nothing(void **state) {
    (void)state;
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            writer();
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    AUTO_KEYS k = {0};
    bool there;
    struct err e;
    assert_int_equal(keys_read(dir, "keys.json", &k, &there, &e), 0);
    assert_int_equal(k.n, WRITERS * ROUNDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_that_are_refused_say_where),
        cmocka_unit_test(a_key_is_read_with_all_it_has),
        cmocka_unit_test(the_list_has_a_largest_length),
        cmocka_unit_test(a_secret_opens_its_own_key_only),
        cmocka_unit_test(odd_names_and_limits_make_no_key),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_again, enter, leave),
        cmocka_unit_test_setup_teardown(a_file_keeps_its_owner_and_gets_its_mode, enter, leave),
        cmocka_unit_test_setup_teardown(only_regular_files_are_used, enter, leave),
        cmocka_unit_test_setup_teardown(a_file_that_is_too_large_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(writers_at_once_lose_nothing, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
