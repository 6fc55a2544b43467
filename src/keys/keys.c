/* See keys.h. First the list and its text, then the file. */

#include "keys/keys.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/service.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <nettle/base64.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREATED_MAX   253402300799.0 /* the end of the year 9999 */
#define ID_PREFIX     "key_"
#define ID_BYTES      8
#define SECRET_PREFIX "clk_"
#define SECRET_BYTES  32
#define HEX_DIGITS    "0123456789abcdef"
#define WORD_LETTERS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-"

/* ------------------------------------------------------------------ values */

static void hex_write(const uint8_t *bytes, size_t n, char *out) {
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = HEX_DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = HEX_DIGITS[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

/* Lower case only: one value has one form. */
static bool hex_read(const char *text, uint8_t *out, size_t n) {
    if (strlen(text) != 2 * n || strspn(text, HEX_DIGITS) != 2 * n)
        return false;
    for (size_t i = 0; i < 2 * n; i++) {
        unsigned digit = (unsigned)(strchr(HEX_DIGITS, text[i]) - HEX_DIGITS);
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return true;
}

static int check_word(const char *kind, const char *field, const char *text, struct err *e) {
    size_t len = strlen(text);
    if (len > 0 && len <= KEYS_WORD_MAX && strspn(text, WORD_LETTERS) == len)
        return 0;
    char quoted[96];
    return err_user(e, kind, "%s is %s; it must be 1 to %d characters of A-Z a-z 0-9 . _ @ -",
                    field, log_quote(text, quoted, sizeof quoted), KEYS_WORD_MAX);
}

/* Written so that a NaN is refused. */
static int check_limit(const char *kind, const char *field, double v, double min, struct err *e) {
    if (v >= min && v <= KEYS_LIMIT_MAX)
        return 0;
    return err_user(e, kind, "%s is %g; it must be from %g to %u (without it there is no limit)",
                    field, v, min, KEYS_LIMIT_MAX);
}

/* ------------------------------------------------------------------ the list */

void key_done(struct key *k) {
    free(k->name);
    free(k->tenant);
    *k = (struct key){0};
}

void keys_done(struct keys *k) {
    for (unsigned i = 0; i < k->n; i++)
        key_done(&k->items[i]);
    free(k->items);
    *k = (struct keys){0};
}

int keys_add_take(struct keys *k, struct key *key, struct err *e) {
    if (k->n >= KEYS_MAX)
        return err_user(e, "too_many_keys", "there are %u keys, and more are not allowed", k->n);
    k->items = xrealloc(k->items, (k->n + 1) * sizeof *k->items);
    k->items[k->n++] = *key;
    *key = (struct key){0};
    return 0;
}

void keys_remove(struct keys *k, unsigned at) {
    key_done(&k->items[at]);
    memmove(&k->items[at], &k->items[at + 1], (k->n - at - 1) * sizeof *k->items);
    k->n--;
}

void keys_hash_init(struct sha256_ctx *h) {
    sha256_init(h);
}

void keys_hash_add(struct sha256_ctx *h, const void *data, size_t len) {
    sha256_update(h, len, data);
}

void keys_hash_end(struct sha256_ctx *h, uint8_t ret[32]) {
    sha256_digest(h, 32, ret);
}

void keys_sha256(const void *data, size_t len, uint8_t ret[32]) {
    struct sha256_ctx ctx;
    keys_hash_init(&ctx);
    keys_hash_add(&ctx, data, len);
    keys_hash_end(&ctx, ret);
}

const struct key *keys_find(const struct keys *k, const char *secret, size_t len) {
    uint8_t sent[32];
    keys_sha256(secret, len, sent);
    /* SECURITY: no branch on the outcome either; `found` counts from 1. */
    size_t found = 0;
    for (size_t i = 0; i < k->n; i++) {
        size_t equal = (size_t)memeql_sec(sent, k->items[i].sha256, sizeof sent);
        size_t mask = (size_t)0 - equal;
        found = (found & ~mask) | ((i + 1) & mask);
    }
    return found ? &k->items[found - 1] : NULL;
}

static int check_new(const char *name, const char *tenant, const struct key_limits *l,
                     struct err *e) {
    static const char kind[] = "bad_value";
    if (check_word(kind, "name", name, e) < 0 || check_word(kind, "tenant", tenant, e) < 0)
        return -1;
    if (l->requests_per_second != 0 &&
        check_limit(kind, "requests_per_second", l->requests_per_second, KEYS_RATE_MIN, e) < 0)
        return -1;
    if (l->concurrent && check_limit(kind, "concurrent", l->concurrent, 1, e) < 0)
        return -1;
    if (l->cpu_seconds_per_minute &&
        check_limit(kind, "cpu_seconds_per_minute", l->cpu_seconds_per_minute, 1, e) < 0)
        return -1;
    return l->sandboxes ? check_limit(kind, "sandboxes", l->sandboxes, 1, e) : 0;
}

static int make_secret(char secret[KEYS_SECRET_SIZE], uint8_t id[ID_BYTES], struct err *e) {
    uint8_t bits[SECRET_BYTES + ID_BYTES];
    /* As few bytes as these come in one piece, and no signal interrupts them. */
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return err_sys(e, "getrandom");
    memcpy(id, bits + SECRET_BYTES, ID_BYTES);
    size_t at = strlen(SECRET_PREFIX);
    memcpy(secret, SECRET_PREFIX, at + 1);
    struct base64_encode_ctx ctx;
    base64url_encode_init(&ctx);
    at += base64_encode_update(&ctx, secret + at, SECRET_BYTES, bits);
    at += base64_encode_final(&ctx, secret + at);
    explicit_bzero(bits, sizeof bits);
    secret[at] = '\0';
    char *padding = strchr(secret, '=');
    if (padding)
        *padding = '\0';
    return 0;
}

int key_make(const char *name, const char *tenant, const struct key_limits *limits, struct key *ret,
             char secret[KEYS_SECRET_SIZE], struct err *e) {
    static const struct key_limits none = {0};
    const struct key_limits *l = limits ? limits : &none;
    const char *of = tenant ? tenant : name;
    if (check_new(name, of, l, e) < 0)
        return -1;
    uint64_t created_ms = clock_ns(CLOCK_REALTIME) / 1000000u;
    struct key k = {.created = (double)created_ms / 1e3, .limits = *l};
    uint8_t id[ID_BYTES];
    if (make_secret(secret, id, e) < 0)
        return -1;
    keys_sha256(secret, strlen(secret), k.sha256);
    memcpy(k.id, ID_PREFIX, sizeof ID_PREFIX);
    hex_write(id, sizeof id, k.id + strlen(ID_PREFIX));
    k.name = xstrdup(name);
    k.tenant = xstrdup(of);
    *ret = k;
    return 0;
}

/* ------------------------------------------------------------------ text to list */

static int check_members(const json_t *object, const char *const *known, struct err *e) {
    const char *member;
    const json_t *v;
    json_object_foreach((json_t *)object, member, v) {
        const char *const *k = known;
        while (*k && strcmp(*k, member) != 0)
            k++;
        char quoted[64];
        if (!*k)
            return err_user(e, "bad_keys", "there is no member %s",
                            log_quote(member, quoted, sizeof quoted));
    }
    return 0;
}

/* Borrowed from the object; NULL with *e filled when it is not there or no string. */
static const char *get_text(const json_t *object, const char *member, struct err *e) {
    const json_t *v = json_object_get(object, member);
    if (!json_is_string(v))
        err_user(e, "bad_keys", v ? "%s must be a string" : "%s is missing", member);
    return json_string_value(v);
}

static int read_word(const json_t *object, const char *member, char **ret, struct err *e) {
    const char *text = get_text(object, member, e);
    if (!text || check_word("bad_keys", member, text, e) < 0)
        return -1;
    *ret = xstrdup(text);
    return 0;
}

static int read_id(const json_t *object, struct key *k, struct err *e) {
    const char *text = get_text(object, "id", e);
    uint8_t bits[ID_BYTES];
    size_t prefix = strlen(ID_PREFIX);
    if (!text)
        return -1;
    if (strncmp(text, ID_PREFIX, prefix) != 0 || !hex_read(text + prefix, bits, sizeof bits))
        return err_user(e, "bad_keys",
                        "id must be " ID_PREFIX " and 16 hexadecimal digits in lower case");
    memcpy(k->id, text, strlen(text) + 1);
    return 0;
}

static int read_hash(const json_t *object, struct key *k, struct err *e) {
    const char *text = get_text(object, "sha256", e);
    if (!text)
        return -1;
    if (!hex_read(text, k->sha256, sizeof k->sha256))
        return err_user(e, "bad_keys", "sha256 must be 64 hexadecimal digits in lower case");
    return 0;
}

static int read_created(const json_t *object, struct key *k, struct err *e) {
    const json_t *v = json_object_get(object, "created");
    k->created = json_number_value(v);
    if (!json_is_number(v) || !(k->created >= 0 && k->created <= CREATED_MAX))
        return err_user(e, "bad_keys",
                        v ? "created must be a number of seconds since 1970"
                          : "created is missing");
    return 0;
}

/* A limit that is not there stays 0. */
static int read_whole_limit(const json_t *limits, const char *member, uint32_t *ret,
                            struct err *e) {
    const json_t *v = json_object_get(limits, member);
    if (!v)
        return 0;
    if (!json_is_integer(v))
        return err_user(e, "bad_keys", "%s must be a whole number", member);
    if (check_limit("bad_keys", member, (double)json_integer_value(v), 1, e) < 0)
        return -1;
    *ret = (uint32_t)json_integer_value(v);
    return 0;
}

static int read_rate(const json_t *limits, double *ret, struct err *e) {
    static const char member[] = "requests_per_second";
    const json_t *v = json_object_get(limits, member);
    if (!v)
        return 0;
    if (!json_is_number(v))
        return err_user(e, "bad_keys", "%s must be a number", member);
    *ret = json_number_value(v);
    return check_limit("bad_keys", member, *ret, KEYS_RATE_MIN, e);
}

static int read_limits(const json_t *object, struct key_limits *l, struct err *e) {
    static const char *const known[] = {"requests_per_second", "concurrent",
                                        "cpu_seconds_per_minute", "sandboxes", NULL};
    const json_t *v = json_object_get(object, "limits");
    if (!v)
        return 0;
    if (!json_is_object(v))
        return err_user(e, "bad_keys", "limits must be an object");
    if (check_members(v, known, e) < 0 || read_rate(v, &l->requests_per_second, e) < 0 ||
        read_whole_limit(v, known[1], &l->concurrent, e) < 0 ||
        read_whole_limit(v, known[2], &l->cpu_seconds_per_minute, e) < 0 ||
        read_whole_limit(v, known[3], &l->sandboxes, e) < 0)
        return err_wrap(e, "limits");
    return 0;
}

/* *k is the list's already, so what is half read is released with it. */
static int read_key(const json_t *object, struct key *k, struct err *e) {
    static const char *const known[] = {"id",      "name",   "tenant", "sha256",
                                        "created", "limits", NULL};
    if (!json_is_object(object))
        return err_user(e, "bad_keys", "must be an object");
    if (check_members(object, known, e) < 0 || read_id(object, k, e) < 0 ||
        read_word(object, "name", &k->name, e) < 0 || read_hash(object, k, e) < 0 ||
        read_created(object, k, e) < 0 || read_limits(object, &k->limits, e) < 0)
        return -1;
    if (json_object_get(object, "tenant"))
        return read_word(object, "tenant", &k->tenant, e);
    k->tenant = xstrdup(k->name);
    return 0;
}

static int by_id(const void *a, const void *b) {
    return strcmp((*(const struct key *const *)a)->id, (*(const struct key *const *)b)->id);
}

static int by_hash(const void *a, const void *b) {
    return memcmp((*(const struct key *const *)a)->sha256, (*(const struct key *const *)b)->sha256,
                  sizeof((struct key *)NULL)->sha256);
}

static int refuse_doubles(const struct keys *k, int (*by)(const void *, const void *),
                          const char *member, struct err *e) {
    AUTO_FREE const struct key **sorted = xcalloc(k->n, sizeof *sorted);
    for (unsigned i = 0; i < k->n; i++)
        sorted[i] = &k->items[i];
    qsort(sorted, k->n, sizeof *sorted, by);
    for (unsigned i = 1; i < k->n; i++) {
        if (by(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        size_t a = (size_t)(sorted[i - 1] - k->items), b = (size_t)(sorted[i] - k->items);
        return err_user(e, "bad_keys", "keys[%zu]: %s is the same as that of keys[%zu]",
                        a > b ? a : b, member, a > b ? b : a);
    }
    return 0;
}

static int read_list(const json_t *list, struct keys *k, struct err *e) {
    if (!json_is_array(list))
        return err_user(e, "bad_keys", list ? "keys must be an array" : "keys is missing");
    size_t n = json_array_size(list);
    if (n > KEYS_MAX)
        return err_user(e, "bad_keys", "keys has %zu elements; at most %u are allowed", n,
                        KEYS_MAX);
    k->items = xcalloc(n, sizeof *k->items);
    while (k->n < n) {
        unsigned i = k->n++;
        if (read_key(json_array_get(list, i), &k->items[i], e) < 0)
            return err_wrap(e, "keys[%u]", i);
    }
    if (refuse_doubles(k, by_id, "id", e) < 0)
        return -1;
    return refuse_doubles(k, by_hash, "sha256", e);
}

int keys_parse(const char *text, size_t len, struct keys *ret, struct err *e) {
    static const char *const known[] = {"keys", NULL};
    AUTO_KEYS k = {0};
    json_auto_t *root = NULL;
    struct err why;
    if (len > KEYS_FILE_MAX)
        return err_user(e, "bad_keys", "more than %u bytes are not allowed", KEYS_FILE_MAX);
    if (json_read(text, len, 4, &root, &why) < 0)
        return err_user(e, "bad_keys", "%s", why.text);
    if (!json_is_object(root))
        return err_user(e, "bad_keys", "must be a JSON object");
    if (check_members(root, known, e) < 0 || read_list(json_object_get(root, "keys"), &k, e) < 0)
        return -1;
    *ret = k;
    k = (struct keys){0};
    return 0;
}

/* ------------------------------------------------------------------ list to text */

static void encode_limits(struct jw *j, const struct key_limits *l) {
    if (l->requests_per_second == 0 && !l->concurrent && !l->cpu_seconds_per_minute &&
        !l->sandboxes)
        return;
    jw_key(j, "limits");
    jw_object(j);
    if (l->requests_per_second != 0)
        jw_key_real(j, "requests_per_second", l->requests_per_second);
    if (l->concurrent)
        jw_key_uint(j, "concurrent", l->concurrent);
    if (l->cpu_seconds_per_minute)
        jw_key_uint(j, "cpu_seconds_per_minute", l->cpu_seconds_per_minute);
    if (l->sandboxes)
        jw_key_uint(j, "sandboxes", l->sandboxes);
    jw_object_end(j);
}

void keys_encode(const struct keys *k, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key(&j, "keys");
    jw_array(&j);
    for (unsigned i = 0; i < k->n; i++) {
        const struct key *key = &k->items[i];
        char hash[2 * sizeof key->sha256 + 1];
        hex_write(key->sha256, sizeof key->sha256, hash);
        jw_object(&j);
        jw_key_str(&j, "id", key->id);
        jw_key_str(&j, "name", key->name);
        jw_key_str(&j, "tenant", key->tenant);
        jw_key_str(&j, "sha256", hash);
        jw_key_real(&j, "created", key->created);
        encode_limits(&j, &key->limits);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_object_end(&j);
    buf_addc(to, '\n');
}

/* ------------------------------------------------------------------ the file */

int keys_read(int dir_fd, const char *name, struct keys *ret, bool *ret_there, struct err *e) {
    /* Not blocking, for what turns out to be a pipe. */
    AUTO_FD fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        *ret = (struct keys){0};
        *ret_there = false;
        return 0;
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_user(e, "not_readable", "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_user(e, S_ISDIR(st.st_mode) ? "is_directory" : "not_readable",
                        "%s is no regular file", name);
    AUTO_FREE char *text = xmalloc(KEYS_FILE_MAX + 1);
    size_t len;
    if (fd_read_all(fd, text, KEYS_FILE_MAX + 1, &len, e) < 0)
        return err_user(e, e->code == EFBIG ? "bad_keys" : "not_readable", "%s: %s", name,
                        strerror(e->code));
    if (keys_parse(text, len, ret, e) < 0)
        return err_wrap(e, "%s", name);
    *ret_there = true;
    return 0;
}

/* A name beside the file's. */
static char *beside(const char *name, const char *ending) {
    struct buf b = BUF_INIT;
    buf_addf(&b, ".%s.%s", name, ending);
    return buf_take(&b);
}

static int cannot_write(const char *what, const char *name, struct err *e) {
    return err_user(e, "output_failed", "%s %s: %s", what, name, strerror(errno));
}

int keys_lock(int dir_fd, const char *name, int *ret_fd, struct err *e) {
    /* The lock file stays: whoever waits has it open, and must not wait for one that is gone. */
    AUTO_FREE char *lock = beside(name, "lock");
    AUTO_FD fd =
        openat(dir_fd, lock, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return cannot_write("lock", name, e);
    int rc;
    do
        rc = flock(fd, LOCK_EX);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return cannot_write("lock", name, e);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* Whose the new file is to be: as the old one, or as fits a first one. */
static int choose_owner(int dir_fd, const char *name, struct stat *ret, struct err *e) {
    if (fstatat(dir_fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(ret->st_mode))
            return err_user(e, "output_failed", "%s is no regular file, so it is not replaced",
                            name);
        return 0;
    }
    if (errno != ENOENT)
        return cannot_write("look at", name, e);
    ret->st_uid = geteuid();
    ret->st_gid = service_find().gid;
    return 0;
}

static int fill(int fd, const char *name, const struct keys *k, const struct stat *owner,
                struct err *e) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return cannot_write("look at", name, e);
    /* Often there is nothing to do, and then nothing is asked that might be refused. */
    if ((st.st_uid != owner->st_uid || st.st_gid != owner->st_gid) &&
        fchown(fd, owner->st_uid, owner->st_gid) < 0)
        return cannot_write("keep the owner and group of", name, e);
    AUTO_BUF text = BUF_INIT;
    keys_encode(k, &text);
    if (fchmod(fd, 0640) < 0)
        return cannot_write("set the mode of", name, e);
    if (fd_write_all(fd, text.data, text.len, e) < 0) {
        errno = e->code;
        return cannot_write("write", name, e);
    }
    return fsync(fd) < 0 ? cannot_write("write", name, e) : 0;
}

int keys_write(int dir_fd, const char *name, const struct keys *k, struct err *e) {
    struct stat owner;
    if (choose_owner(dir_fd, name, &owner, e) < 0)
        return -1;
    AUTO_FREE char *fresh = beside(name, "new");
    /* Under the lock nobody else uses this name: what is there was left by one who was killed. */
    if (unlinkat(dir_fd, fresh, 0) < 0 && errno != ENOENT)
        return cannot_write("remove", fresh, e);
    AUTO_FD fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return cannot_write("write", name, e);
    if (fill(fd, name, k, &owner, e) < 0) {
        unlinkat(dir_fd, fresh, 0);
        return -1;
    }
    if (renameat(dir_fd, fresh, dir_fd, name) < 0) {
        cannot_write("replace", name, e);
        unlinkat(dir_fd, fresh, 0);
        return -1;
    }
    /* The name as well must survive a crash; a directory that we may not read is no reason to
     * fail now that the file is there. */
    AUTO_FD dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        (void)fsync(dir);
    return 0;
}
