/* See store_fixture.h. */

#include "store_fixture.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char path[64];
int dir = -1;
struct loop *loop;
struct store *store;
const struct store_options boundless;

int setup(void **state) {
    (void)state;
    struct err e;
    snprintf(path, sizeof path, "/tmp/test_engine_store.XXXXXX");
    assert_non_null(mkdtemp(path));
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_equal(loop_new(&loop, &e), 0);
    return 0;
}

int teardown(void **state) {
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

void reopen(struct store_options o) {
    struct err e;
    store_close(store);
    assert_int_equal(store_open(dir, &o, loop, &store, &e), 0);
}

double real_now(void) {
    return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}

unsigned names_in_dir(void) {
    DIR *d = opendir(path);
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

int exists(const char *name) {
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void put_file(const char *name, const char *text) {
    struct err e;
    AUTO_FD fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
}

void put_meta(const char *id, const char *name, unsigned size, double uploaded) {
    char at[64], text[512];
    snprintf(at, sizeof at, "%s.meta.json", id);
    snprintf(text, sizeof text,
             "{\"file_id\":\"%s\",\"filename\":\"%s\",\"size_bytes\":%u,\"upload_time\":%.6f,"
             "\"tenant\":\"t\"}",
             id, name, size, uploaded);
    put_file(at, text);
}

void put_pair(const char *id, const char *text, double uploaded) {
    put_file(id, text);
    put_meta(id, "by-hand", (unsigned)strlen(text), uploaded);
}

int add(const char *tenant, const char *name, const char *text, struct store_entry *ret,
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

struct store_entry must_add(const char *name, const char *text) {
    struct err e;
    struct store_entry entry;
    assert_int_equal(add("t", name, text, &entry, &e), 0);
    return entry;
}

void assert_no_file(const char *tenant, const char *id) {
    struct err e = {0};
    int fd = -1;
    struct store_entry entry;
    assert_int_equal(store_find(store, tenant, id, &entry, &fd, &e), -1);
    assert_string_equal(e.kind, "no_file");
    assert_int_equal(fd, -1);
}

void assert_holds(const char *id, const char *name, const char *text) {
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

char *repeat(const char *piece, unsigned n) {
    struct buf b = BUF_INIT;
    while (n--)
        buf_adds(&b, piece);
    return buf_take(&b);
}

void assert_lists(const char *tenant, const char *names) {
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

struct store_copy_request copy_request(const char *name, int *fd, uint64_t size) {
    return (struct store_copy_request){.tenant = "t", .name = name, .fd = fd, .size = size};
}

int copy_of(const char *name, int fd, uint64_t size, struct store_entry *ret, struct err *e) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const struct store_copy_request q = copy_request(name, &own, size);
    int r = store_copy(store, &q, ret, e);
    assert_int_equal(own, -1);
    return r;
}
