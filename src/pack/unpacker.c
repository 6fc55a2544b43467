/* tar.gz in; see pack.h. SECURITY: the bytes are anybody's. libarchive reads tar here and nothing
 * else of what it knows; what it tells of an entry is checked before anyone uses it. */

#include "pack/unpacker.h"

#include "pack/inflow.h"
#include "pack/pack_locale.h"

#include "base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT  4095
#define ENTRIES_MAX 50000
#define CALL_MAX    (1u << 20)  /* bytes that one call of libarchive works on: see inflow.c */
#define LATEST      (1ll << 33) /* a time in seconds, so that it fits nanoseconds */

struct unpacker {
    struct archive *archive; /* owned */
    unsigned entries;
    char path[PATH_LIMIT + 1];
    struct inflow in;
};

static la_ssize_t unpacker_on_read(struct archive *a, void *arg, const void **ret) {
    struct unpacker *u = arg;
    const char *why = "";
    ssize_t n = inflow_read(&u->in, ret, &why);
    if (n < 0)
        archive_set_error(a, EIO, "%s", why);
    return n;
}

static int bad(struct unpacker *u, struct err *e) {
    const char *why = archive_error_string(u->archive);
    return err_user(e, "bad_archive", "this is no whole tar.gz: %.200s", why ? why : "unknown");
}

int unpacker_new(int fd, struct unpacker **ret, struct err *e) {
    struct unpacker *u = xcalloc(1, sizeof *u);
    PACK_LOCALE;
    u->archive = archive_read_new();
    if (inflow_begin(&u->in, fd, e) < 0 || !u->archive ||
        archive_read_support_format_tar(u->archive) != ARCHIVE_OK) {
        unpacker_free(u);
        return err_set(e, ENOMEM, "libarchive does not read tar.gz");
    }
    inflow_allow(&u->in, CALL_MAX);
    if (archive_read_open(u->archive, u, NULL, unpacker_on_read, NULL) != ARCHIVE_OK) {
        bad(u, e);
        unpacker_free(u);
        return -1;
    }
    *ret = u;
    return 0;
}

/* Takes "." and empty parts out; "" is the directory itself. What is wrong with it, or NULL. */
static const char *clean(const char *path, char to[PATH_LIMIT + 1]) {
    size_t used = 0;
    if (!path)
        return "has a name that cannot be read";
    if (path[0] == '/')
        return "is an absolute path";
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.')
            return "leads out by \"..\"";
        if (n && !(n == 1 && path[0] == '.')) {
            if (used + 1 + n > PATH_LIMIT)
                return "has a path of more than 4095 bytes";
            if (used)
                to[used++] = '/';
            memcpy(to + used, path, n);
            used += n;
        }
        path += n + (path[n] == '/');
    }
    to[used] = '\0';
    return NULL;
}

static const char *check_entry(struct archive_entry *a, struct pack_entry *ret) {
    if (archive_entry_hardlink(a))
        return "is a hard link";
    switch (archive_entry_filetype(a)) {
    case AE_IFREG:
        ret->type = PACK_FILE;
        return archive_entry_size(a) < 0 ? "has no size" : NULL;
    case AE_IFDIR:
        ret->type = PACK_DIRECTORY;
        return NULL;
    case AE_IFLNK:
        ret->type = PACK_SYMLINK;
        ret->target = archive_entry_symlink(a);
        return !ret->target || !*ret->target || strlen(ret->target) > PATH_LIMIT
                   ? "is a symlink to nothing"
                   : NULL;
    default:
        return "is neither file, directory nor symlink";
    }
}

int unpacker_next(struct unpacker *u, struct pack_entry *ret, struct err *e) {
    struct archive_entry *a;
    PACK_LOCALE;
    inflow_allow(&u->in, CALL_MAX);
    int r = archive_read_next_header(u->archive, &a);
    if (r == ARCHIVE_EOF)
        return 0;
    if (r < ARCHIVE_WARN)
        return bad(u, e);
    if (++u->entries > ENTRIES_MAX)
        return err_user(e, "bad_archive", "the archive has more than %d entries", ENTRIES_MAX);
    *ret = (struct pack_entry){.path = u->path, .target = "", .mode = archive_entry_perm(a) & 0777};
    const char *name = archive_entry_pathname(a), *wrong = clean(name, u->path);
    if (!wrong)
        wrong = check_entry(a, ret);
    if (!wrong && !*u->path && ret->type != PACK_DIRECTORY)
        wrong = "has no name";
    if (wrong)
        return err_user(e, "bad_archive", "\"%.200s\" in the archive %s", name ? name : "", wrong);
    ret->size = ret->type == PACK_FILE ? (uint64_t)archive_entry_size(a) : 0;
    if (archive_entry_mtime(a) > 0 && archive_entry_mtime(a) < LATEST)
        ret->mtime_ns =
            (uint64_t)archive_entry_mtime(a) * 1000000000u + (uint64_t)archive_entry_mtime_nsec(a);
    return 1;
}

int unpacker_data(struct unpacker *u, const void **ret, size_t *ret_len, uint64_t *ret_at,
                  struct err *e) {
    la_int64_t at;
    PACK_LOCALE;
    inflow_allow(&u->in, CALL_MAX);
    int r = archive_read_data_block(u->archive, ret, ret_len, &at);
    if (r == ARCHIVE_EOF)
        return 0;
    if (r < ARCHIVE_WARN || at < 0)
        return bad(u, e);
    *ret_at = (uint64_t)at;
    return 1;
}

void unpacker_free(struct unpacker *u) {
    if (!u)
        return;
    archive_read_free(u->archive);
    inflow_end(&u->in);
    free(u);
}
