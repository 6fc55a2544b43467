/* tar.gz in; see pack.h. SECURITY: the bytes are anybody's. A library that knows all that a tar may
 * say does work and takes memory for each of it: lists of access rights, in quadratic time, and
 * maps of holes. So tars are read here, of a header only what an entry is made of (tar_header.h,
 * pax.h), and what an entry says of itself is checked before anyone uses it. One call works on a
 * bounded number of bytes, and nothing that it keeps grows with the archive. */

#include "pack/unpacker.h"

#include "pack/inflow.h"
#include "pack/pax.h"
#include "pack/tar_header.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT  4095
#define ENTRIES_MAX 50000
#define CALL_MAX    (1u << 20) /* bytes that one call works on: see inflow.c */

struct unpacker {
    struct inflow in;
    const uint8_t *ahead; /* what came in and is not used yet */
    size_t nahead;
    bool has_begun; /* there was a header: it is a tar */
    bool is_over;
    unsigned entries;
    struct tar_header header; /* of the entry at hand, with what else is said of it */
    struct tar_more more;
    struct pax pax;
    char path[PATH_LIMIT + 1];
    uint64_t size, pos; /* of its content */
    bool is_read;       /* its content is for whoever asks; else it is skipped */
};

/* ---- bytes ---- */

static int bad(const char *why, struct err *e) {
    err_user(e, "bad_archive", "this is no whole tar.gz: %.200s", why);
    return -1;
}

/* 1 when there are some ahead, 0 at the end, or -1. */
static int look_ahead(struct unpacker *u, struct err *e) {
    const void *data;
    const char *why = "";
    if (u->nahead)
        return 1;
    ssize_t n = inflow_read(&u->in, &data, &why);
    if (n < 0)
        return bad(why, e);
    u->ahead = data;
    u->nahead = (size_t)n;
    return n > 0;
}

/* Some of the next `want` bytes, where the archive may not end. */
static int take_some(struct unpacker *u, uint64_t want, const uint8_t **ret, size_t *ret_len,
                     struct err *e) {
    int r = look_ahead(u, e);
    if (r <= 0)
        return r < 0 ? -1 : bad("it ends too early", e);
    *ret = u->ahead;
    *ret_len = want < u->nahead ? (size_t)want : u->nahead;
    u->ahead += *ret_len;
    u->nahead -= *ret_len;
    return 0;
}

static int skip(struct unpacker *u, uint64_t bytes, struct err *e) {
    while (bytes) {
        const uint8_t *data;
        size_t n;
        if (take_some(u, bytes, &data, &n, e) < 0)
            return -1;
        bytes -= n;
    }
    return 0;
}

/* What follows content up to the next block. */
static uint64_t padding(uint64_t size) {
    return -size % TAR_BLOCK;
}

/* 1, 0 at the end, which may be where a header would begin, or -1. */
static int next_block(struct unpacker *u, uint8_t block[TAR_BLOCK], struct err *e) {
    int r = look_ahead(u, e);
    if (r <= 0)
        return r;
    for (size_t has = 0, n; has < TAR_BLOCK; has += n) {
        const uint8_t *data;
        if (take_some(u, TAR_BLOCK - has, &data, &n, e) < 0)
            return -1;
        memcpy(block + has, data, n);
    }
    return 1;
}

/* ---- headers ---- */

typedef bool take_fn(struct unpacker *u, const uint8_t *data, size_t len);

static bool take_path(struct unpacker *u, const uint8_t *data, size_t len) {
    tar_text_add(&u->more.path, data, len);
    return true;
}

static bool take_link(struct unpacker *u, const uint8_t *data, size_t len) {
    tar_text_add(&u->more.link, data, len);
    return true;
}

static bool take_pax(struct unpacker *u, const uint8_t *data, size_t len) {
    return pax_read(&u->pax, data, len);
}

static bool take_nothing(struct unpacker *u, const uint8_t *data, size_t len) {
    (void)u, (void)data, (void)len;
    return true;
}

/* Of a header that is about the next one: who takes its content. NULL: it is an entry. */
static take_fn *begin_more(struct unpacker *u) {
    switch (u->header.type) {
    case 'L':
        tar_text_clear(&u->more.path);
        return take_path;
    case 'K':
        tar_text_clear(&u->more.link);
        return take_link;
    case 'x':
    case 'X': /* Sun's, the same */
        pax_begin(&u->pax, &u->more);
        return take_pax;
    case 'g': /* of the whole archive: a comment of git's */
    case 'A': /* access rights */
    case 'V': /* a label */
        return take_nothing;
    default:
        return NULL;
    }
}

static int read_more(struct unpacker *u, take_fn *fn, struct err *e) {
    uint64_t left = (uint64_t)u->header.size;
    if (u->header.size < 0)
        return bad("a header has no size", e);
    while (left) {
        const uint8_t *data;
        size_t n;
        if (take_some(u, left, &data, &n, e) < 0)
            return -1;
        if (!fn(u, data, n))
            return bad("it has a damaged pax header", e);
        left -= n;
    }
    if (fn == take_pax && !pax_end(&u->pax))
        return bad("it has a damaged pax header", e);
    return skip(u, padding((uint64_t)u->header.size), e);
}

/* An end is none behind a header that is about the next one, or in place of all. */
static int end_here(struct unpacker *u, bool has_more, bool is_said, struct err *e) {
    if (has_more || (!is_said && !u->has_begun))
        return bad(has_more ? "it ends too early" : "it is empty", e);
    u->is_over = true;
    return 0;
}

/* The next entry's, with all that is said of it before. */
static int next_header(struct unpacker *u, struct err *e) {
    uint8_t block[TAR_BLOCK];
    bool has_more = false;
    u->more.is_sparse = u->more.has_size = u->more.has_mtime = false;
    tar_text_clear(&u->more.path);
    tar_text_clear(&u->more.link);
    for (;;) {
        int r = next_block(u, block, e);
        if (r < 0)
            return -1;
        if (r == 0 || tar_is_null(block))
            return end_here(u, has_more, r > 0, e);
        if (!tar_header_read(block, &u->header))
            return bad(u->has_begun ? "it has a damaged header" : "it is no tar", e);
        u->has_begun = true;
        take_fn *fn = begin_more(u);
        if (!fn)
            return 1;
        if (read_more(u, fn, e) < 0)
            return -1;
        has_more = has_more || fn != take_nothing;
    }
}

/* ---- entries ---- */

/* Takes "." and empty parts out; "" is the directory itself. What is wrong with it, or NULL. */
static const char *clean(const char *path, char to[PATH_LIMIT + 1]) {
    size_t used = 0;
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

static const char *path_of(const struct unpacker *u) {
    return u->more.path.len ? u->more.path.data : u->header.path;
}

/* Old tars have no type for a directory: its name says so. */
static enum pack_type file_type(const struct unpacker *u) {
    const char *path = path_of(u);
    size_t len = strlen(path);
    return len && path[len - 1] == '/' ? PACK_DIRECTORY : PACK_FILE;
}

static const char *check_link(const struct unpacker *u, struct pack_entry *ret) {
    ret->target = u->more.link.len ? u->more.link.data : u->header.link;
    if (!*ret->target)
        return "is a symlink to nothing";
    return strlen(ret->target) > PATH_LIMIT ? "is a symlink to more than 4095 bytes" : NULL;
}

/* What POSIX does not know is a file. */
static const char *check_type(const struct unpacker *u, struct pack_entry *ret) {
    ret->type = PACK_FILE;
    if (u->header.type == 'S' || u->more.is_sparse)
        return "has a map of its holes: pack it as a whole file (GNU tar without --sparse, bsdtar "
               "with --no-read-sparse)";
    switch (u->header.type) {
    case '1':
        return "is a hard link";
    case '2':
        ret->type = PACK_SYMLINK;
        return check_link(u, ret);
    case '3':
    case '4':
    case '6':
    case 'M': /* the rest of a file in another archive */
        return "is neither file, directory nor symlink";
    case '5':
    case 'D': /* GNU's incremental ones: with a list of what was in it */
        ret->type = PACK_DIRECTORY;
        return NULL;
    default:
        ret->type = file_type(u);
        return NULL;
    }
}

/* How long its content is: links and directories have none, whatever the size says. */
static const char *set_size(struct unpacker *u) {
    bool has_content = u->header.type != '2' && u->header.type != '5';
    int64_t size = u->more.has_size ? u->more.size : u->header.size;
    u->pos = 0;
    u->size = has_content && size > 0 ? (uint64_t)size : 0;
    return has_content && size < 0 ? "has no size" : NULL;
}

static const char *check_entry(struct unpacker *u, struct pack_entry *ret) {
    const char *wrong =
        u->more.path.is_long ? "has a path of more than 4095 bytes" : clean(path_of(u), u->path);
    if (!wrong)
        wrong = check_type(u, ret);
    if (!wrong && !*u->path && ret->type != PACK_DIRECTORY)
        wrong = "has no name";
    return wrong ? wrong : set_size(u);
}

int unpacker_new(int fd, struct unpacker **ret, struct err *e) {
    struct unpacker *u = xcalloc(1, sizeof *u);
    if (inflow_begin(&u->in, fd, e) < 0) {
        unpacker_free(u);
        return -1;
    }
    *ret = u;
    return 0;
}

int unpacker_next(struct unpacker *u, struct pack_entry *ret, struct err *e) {
    if (u->is_over)
        return 0;
    inflow_allow(&u->in, CALL_MAX);
    if (skip(u, u->size - u->pos, e) < 0 || skip(u, padding(u->size), e) < 0)
        return -1;
    u->size = u->pos = 0;
    int r = next_header(u, e);
    if (r <= 0)
        return r;
    if (++u->entries > ENTRIES_MAX)
        return err_user(e, "bad_archive", "the archive has more than %d entries", ENTRIES_MAX);
    *ret = (struct pack_entry){.path = u->path, .target = "", .mode = u->header.mode & 0777};
    const char *wrong = check_entry(u, ret);
    if (wrong)
        return err_user(e, "bad_archive", "\"%.200s\" in the archive %s", path_of(u), wrong);
    u->is_read = ret->type == PACK_FILE;
    ret->size = u->is_read ? u->size : 0;
    ret->mtime_ns = u->more.has_mtime ? u->more.mtime_ns : u->header.mtime_ns;
    return 1;
}

int unpacker_data(struct unpacker *u, const void **ret, size_t *ret_len, uint64_t *ret_at,
                  struct err *e) {
    const uint8_t *data;
    if (!u->is_read || u->pos == u->size)
        return 0;
    inflow_allow(&u->in, CALL_MAX);
    if (take_some(u, u->size - u->pos, &data, ret_len, e) < 0)
        return -1;
    *ret = data;
    *ret_at = u->pos;
    u->pos += *ret_len;
    return 1;
}

void unpacker_free(struct unpacker *u) {
    if (!u)
        return;
    inflow_end(&u->in);
    free(u);
}
