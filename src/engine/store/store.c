/* See store.h.
 *
 * On disk a file is DIR/ID, its bytes, and DIR/ID.meta.json, what is known about it. Both are made
 * under names that start with a dot and renamed when whole, the meta first: so a DIR/ID without a
 * whole meta beside it, or a meta without its DIR/ID, is what a crash left behind. Nothing is
 * synced: a power cut may leave short files under whole names, and therefore the size in the meta
 * must agree with the file's.
 *
 * In memory each file is a node in a hash table by id and in a list by time of upload. All files
 * live equally long, so the list is also the order in which they expire, and one timer set to its
 * old end is enough.
 *
 * SECURITY: an id from outside is checked to be a uuid before it becomes part of a path, and only
 * ids that are in the table reach the disk. Symlinks are never followed. */

#include "engine/store/store.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "loop/crew.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define META_MAX  16384 /* a name and a tenant with every byte escaped fit */
#define SWEEP_MAX 32u   /* files removed per wake-up */
#define TIMER_MAX 86400.0
#define STAMP_GAP 1e-6 /* seconds; more than the precision of today's times as a double */

struct node {
    struct store_entry entry;
    struct node *chain; /* next in its bucket */
    struct node *older, *newer;
};

struct store {
    int dir; /* owned: our own, because it carries the lock */
    struct store_options options;
    struct loop *loop; /* borrowed */
    struct timer sweeper;
    struct node **buckets; /* a power of two of them */
    size_t nbuckets;
    struct node *oldest, *newest;
    struct store_cursor *cursors; /* borrowed: lists under way */
    unsigned nfiles;
    uint64_t bytes, pending; /* of whole files; of uploads under way; with their costs */
};

struct store_upload {
    struct store *store; /* borrowed */
    char id[STORE_ID_LEN + 1];
    char *tenant; /* owned */
    int fd;       /* owned */
    uint64_t size;
    struct err failed; /* code 0 while all is well */
};

/* Names on disk. */

enum part { DATA, META, NEW_DATA, NEW_META, PARTS_ };
static const struct {
    const char *before, *after;
} affixes[PARTS_] = {
    [DATA] = {"", ""},
    [META] = {"", ".meta.json"},
    [NEW_DATA] = {".", ".part"},
    [NEW_META] = {".", ".meta.part"},
};

struct path {
    char text[64];
};

static struct path path_of(const char *id, enum part part) {
    struct path p;
    snprintf(p.text, sizeof p.text, "%s%.36s%s", affixes[part].before, id, affixes[part].after);
    return p;
}

static bool is_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_uuid(const char *text, size_t len) {
    if (len != STORE_ID_LEN)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_digit(text[i]))
            return false;
    }
    return true;
}

static void make_uuid(char out[STORE_ID_LEN + 1]) {
    char digits[ID_DIGITS + 1];
    id_make("", digits, sizeof digits);
    digits[12] = '4'; /* version: random */
    digits[16] = "89ab"[(digits[16] <= '9' ? digits[16] : digits[16] - 'a' + 10) & 3]; /* variant */
    snprintf(out, STORE_ID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
             digits + 16, digits + 20);
}

/* Which part of which file a name in the directory is; false for a name that is not ours. */
static bool parse_path(const char *name, char ret_id[STORE_ID_LEN + 1], enum part *ret_part) {
    for (enum part p = DATA; p < PARTS_; p++) {
        size_t before = strlen(affixes[p].before), after = strlen(affixes[p].after);
        size_t len = strlen(name);
        if (len != before + STORE_ID_LEN + after || memcmp(name, affixes[p].before, before) != 0 ||
            strcmp(name + len - after, affixes[p].after) != 0 ||
            !is_uuid(name + before, STORE_ID_LEN))
            continue;
        memcpy(ret_id, name + before, STORE_ID_LEN);
        ret_id[STORE_ID_LEN] = '\0';
        *ret_part = p;
        return true;
    }
    return false;
}

static int open_part(const struct store *s, const char *id, enum part part, struct stat *ret_stat,
                     int *ret_fd, struct err *e) {
    struct path path = path_of(id, part);
    /* O_NONBLOCK: should something have put a FIFO there, we do not wait for its writer */
    AUTO_FD fd = openat(s->dir, path.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, ret_stat) < 0)
        return err_sys(e, "open %s", path.text);
    if (!S_ISREG(ret_stat->st_mode))
        return err_set(e, EINVAL, "open %s: not a regular file", path.text);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* 0 also when it was not there. */
static int unlink_part(const struct store *s, const char *id, enum part part, struct err *e) {
    struct path path = path_of(id, part);
    bool large = s->options.crew && (part == DATA || part == NEW_DATA);
    AUTO_FD held = large ? openat(s->dir, path.text, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (unlinkat(s->dir, path.text, 0) < 0 && errno != ENOENT)
        return err_sys(e, "remove %s", path.text);
    if (held >= 0)
        crew_close(s->options.crew, &held);
    return 0;
}

int store_error(struct err *e) {
    int code = e->code;
    char text[sizeof e->text];
    memcpy(text, e->text, sizeof text);
    if (code == ENOSPC || code == EDQUOT)
        err_user(e, "disk_full", "%s", text);
    else if (code == EFBIG)
        err_user(e, "file_too_large", "%s", text);
    e->code = code;
    return -1;
}

static int create_part(const struct store *s, const char *id, enum part part, int *ret_fd,
                       struct err *e) {
    struct path path = path_of(id, part);
    int fd = openat(s->dir, path.text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_sys(e, "create %s", path.text);
        return store_error(e);
    }
    *ret_fd = fd;
    return 0;
}

static int rename_part(const struct store *s, const char *id, enum part from, enum part to,
                       struct err *e) {
    struct path a = path_of(id, from), b = path_of(id, to);
    if (renameat(s->dir, a.text, s->dir, b.text) == 0)
        return 0;
    err_sys(e, "rename %s", a.text);
    return store_error(e);
}

/* Entries. */

void store_entry_done(struct store_entry *e) {
    free(e->name);
    free(e->tenant);
    *e = (struct store_entry){0};
}

static void entry_copy(const struct store_entry *from, struct store_entry *ret) {
    *ret = *from;
    ret->name = xstrdup(from->name);
    ret->tenant = xstrdup(from->tenant);
}

static double real_now(void) {
    return (double)clock_ns(CLOCK_REALTIME) / 1e9;
}

static bool is_old(const struct store *s, const struct store_entry *e, double now) {
    return s->options.ttl_s && e->uploaded + (double)s->options.ttl_s <= now;
}

static void cut_name(char *name) {
    size_t len = strlen(name);
    if (len <= STORE_NAME_MAX)
        return;
    for (len = STORE_NAME_MAX; (name[len] & 0xc0) == 0x80; len--)
        ;
    name[len] = '\0';
}

/* What the name is after a journey through JSON, which leaves only well-formed characters. This
 * never makes it shorter, so four bytes more than the bound are enough to begin with: a character
 * cut in two there ends up beyond it. */
static char *clean_name(const char *name) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    struct err e;
    json_auto_t *root = NULL;
    jw_array(&j);
    jw_strn(&j, name, strnlen(name, STORE_NAME_MAX + 4));
    jw_array_end(&j);
    const char *clean = "";
    if (json_read(text.data, text.len, 1, &root, &e) == 0)
        clean = json_string_value(json_array_get(root, 0));
    char *out = xstrdup(clean && *clean ? clean : "unnamed");
    cut_name(out);
    return out;
}

static int write_meta(const struct store *s, const struct store_entry *entry, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_key_str(&j, "file_id", entry->id);
    jw_key_str(&j, "filename", entry->name);
    jw_key_uint(&j, "size_bytes", entry->size);
    jw_key_real(&j, "upload_time", entry->uploaded);
    jw_key_str(&j, "tenant", entry->tenant);
    jw_object_end(&j);
    AUTO_FD fd = -1;
    if (create_part(s, entry->id, NEW_META, &fd, e) < 0)
        return -1;
    if (fd_write_all(fd, text.data, text.len, e) < 0) {
        err_wrap(e, "meta of %s", entry->id);
        return store_error(e);
    }
    return rename_part(s, entry->id, NEW_META, META, e);
}

/* A meta that is not whole is EINVAL or EFBIG; one without a tenant (older servers wrote such) is
 * the empty tenant's. */
static int read_meta(const struct store *s, const char *id, struct store_entry *ret,
                     struct err *e) {
    AUTO_FD fd = -1;
    struct stat st;
    char text[META_MAX + 1];
    size_t len;
    json_auto_t *root = NULL;
    if (open_part(s, id, META, &st, &fd, e) < 0 ||
        fd_read_all(fd, text, sizeof text, &len, e) < 0 || json_read(text, len, 2, &root, e) < 0)
        return -1;
    const char *file_id, *name, *tenant = "";
    json_int_t size;
    double uploaded;
    if (json_unpack(root, "{s:s, s:s, s:I, s:F, s?s}", "file_id", &file_id, "filename", &name,
                    "size_bytes", &size, "upload_time", &uploaded, "tenant", &tenant) < 0 ||
        strcmp(file_id, id) != 0 || size < 0)
        return err_set(e, EINVAL, "meta of %s: not one of ours", id);
    *ret = (struct store_entry){.size = (uint64_t)size, .uploaded = uploaded};
    memcpy(ret->id, id, sizeof ret->id);
    ret->name = clean_name(name);
    ret->tenant = xstrdup(tenant);
    return 0;
}

/* The index. */

static size_t bucket_of(const struct store *s, const char *id) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32) & (s->nbuckets - 1);
}

static void grow_buckets(struct store *s) {
    struct node **old = s->buckets;
    size_t nold = s->nbuckets;
    s->nbuckets = nold ? nold * 2 : 64;
    s->buckets = xcalloc(s->nbuckets, sizeof *s->buckets);
    for (size_t i = 0; i < nold; i++) {
        for (struct node *n = old[i], *next; n; n = next) {
            struct node **to = &s->buckets[bucket_of(s, n->entry.id)];
            next = n->chain;
            n->chain = *to;
            *to = n;
        }
    }
    free(old);
}

static void link_newest(struct store *s, struct node *n) {
    n->older = s->newest;
    n->newer = NULL;
    *(s->newest ? &s->newest->newer : &s->oldest) = n;
    s->newest = n;
}

/* Takes what the entry owns. */
static struct node *add_node(struct store *s, const struct store_entry *entry) {
    struct node *n = xcalloc(1, sizeof *n);
    n->entry = *entry;
    if (s->nfiles >= s->nbuckets)
        grow_buckets(s);
    struct node **to = &s->buckets[bucket_of(s, entry->id)];
    n->chain = *to;
    *to = n;
    link_newest(s, n);
    s->nfiles++;
    s->bytes += entry->size + STORE_FILE_COST;
    return n;
}

static struct node *find_node(const struct store *s, const char *id) {
    if (!s->nfiles)
        return NULL;
    struct node *n = s->buckets[bucket_of(s, id)];
    while (n && strcmp(n->entry.id, id) != 0)
        n = n->chain;
    return n;
}

static void free_node(struct node *n) {
    store_entry_done(&n->entry);
    free(n);
}

static void drop_node(struct store *s, struct node *n) {
    struct node **at = &s->buckets[bucket_of(s, n->entry.id)];
    while (*at != n)
        at = &(*at)->chain;
    *at = n->chain;
    *(n->older ? &n->older->newer : &s->oldest) = n->newer;
    *(n->newer ? &n->newer->older : &s->newest) = n->older;
    for (struct store_cursor *c = s->cursors; c; c = c->next)
        c->at = c->at == n ? n->older : c->at;
    s->nfiles--;
    s->bytes -= n->entry.size + STORE_FILE_COST;
    free_node(n);
}

/* From the disk and the index. What cannot be unlinked is tried again at the next start. */
static void remove_node(struct store *s, struct node *n) {
    struct err e;
    unlink_part(s, n->entry.id, META, &e);
    unlink_part(s, n->entry.id, DATA, &e);
    drop_node(s, n);
}

/* Expiry. */

/* How many were removed, SWEEP_MAX at most. */
static unsigned sweep(struct store *s) {
    double now = real_now();
    unsigned n = 0;
    while (n < SWEEP_MAX && s->oldest && is_old(s, &s->oldest->entry, now)) {
        remove_node(s, s->oldest);
        n++;
    }
    return n;
}

/* The timer runs on the monotonic clock and files age on the real one: it fires once a day at
 * least, to follow a clock that was set. */
static void set_sweeper(struct store *s) {
    if (!s->options.ttl_s || !s->oldest)
        return;
    double left = s->oldest->entry.uploaded + (double)s->options.ttl_s - real_now();
    left = left < 0 ? 0 : left > TIMER_MAX ? TIMER_MAX : left;
    /* a millisecond more: neither just too early nor twice in one round of the loop */
    loop_timer(s->loop, &s->sweeper, now_ns() + (uint64_t)(left * 1e9) + 1000000u);
}

static void on_sweep(struct timer *t) {
    struct store *s = t->arg;
    sweep(s);
    set_sweeper(s);
}

/* Opening. */

struct found {
    char id[STORE_ID_LEN + 1];
    enum part part;
};

struct finds {
    struct found *items; /* owned */
    size_t n, cap;
};

/* All names of ours, before anything is removed: a directory that changes is not read reliably. */
static int read_names(const struct store *s, struct finds *ret, struct err *e) {
    int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        err_sys(e, "open directory");
        fd_close(&fd);
        return -1;
    }
    const struct dirent *d;
    while (errno = 0, (d = readdir(dir))) {
        struct found f;
        if (!parse_path(d->d_name, f.id, &f.part))
            continue;
        if (ret->n == ret->cap) {
            ret->cap = ret->cap ? ret->cap * 2 : 256;
            ret->items = xrealloc(ret->items, ret->cap * sizeof *ret->items);
        }
        ret->items[ret->n++] = f;
    }
    int r = errno ? err_sys(e, "read directory") : 0;
    closedir(dir);
    return r;
}

static bool is_regular(const struct store *s, const char *id, enum part part, uint64_t *ret_size) {
    struct stat st;
    if (fstatat(s->dir, path_of(id, part).text, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode))
        return false;
    *ret_size = (uint64_t)st.st_size;
    return true;
}

/* Nothing but regular files was made by us. */
static void remove_leftover(const struct store *s, const struct found *f) {
    struct err e;
    uint64_t size;
    if (is_regular(s, f->id, f->part, &size))
        unlink_part(s, f->id, f->part, &e);
}

/* Fails when a file may be whole and we cannot tell: rather that than removing it. */
static int load(struct store *s, const struct found *meta, double now, struct err *e) {
    struct store_entry entry;
    if (read_meta(s, meta->id, &entry, e) < 0) {
        int code = e->code;
        if (code != EINVAL && code != EFBIG && code != ENOENT && code != ELOOP && code != ENXIO)
            return -1;
        remove_leftover(s, meta);
        return 0;
    }
    uint64_t size;
    if (!is_regular(s, meta->id, DATA, &size) || size != entry.size || is_old(s, &entry, now)) {
        remove_leftover(s, meta);
        store_entry_done(&entry);
        return 0;
    }
    if (entry.uploaded > now) /* the clock was set back: do not keep it for longer than the rest */
        entry.uploaded = now;
    add_node(s, &entry);
    return 0;
}

static int by_upload(const void *a, const void *b) {
    const struct store_entry *x = &(*(struct node *const *)a)->entry;
    const struct store_entry *y = &(*(struct node *const *)b)->entry;
    if (x->uploaded != y->uploaded)
        return x->uploaded < y->uploaded ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void sort_list(struct store *s) {
    if (!s->nfiles)
        return;
    struct node **all = xcalloc(s->nfiles, sizeof *all);
    size_t n = 0;
    for (struct node *at = s->oldest; at; at = at->newer)
        all[n++] = at;
    qsort(all, n, sizeof *all, by_upload);
    s->oldest = s->newest = NULL;
    for (size_t i = 0; i < n; i++)
        link_newest(s, all[i]);
    free(all);
}

/* The metas say what is whole; of the rest everything goes that no meta vouched for. */
static int load_all(struct store *s, const struct finds *found, struct err *e) {
    double now = real_now();
    for (size_t i = 0; i < found->n; i++) {
        if (found->items[i].part == META && load(s, &found->items[i], now, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < found->n; i++) {
        const struct found *f = &found->items[i];
        if (f->part != META && (f->part != DATA || !find_node(s, f->id)))
            remove_leftover(s, f);
    }
    sort_list(s);
    return 0;
}

/* Two stores in one directory would take each other's uploads for leftovers. A file system that
 * cannot lock a directory goes without. */
static int lock_dir(int dir, struct err *e) {
    if (flock(dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return err_set(e, EBUSY, "another server uses this directory");
    return 0;
}

int store_open(int dir_fd, const struct store_options *o, struct loop *l, struct store **ret,
               struct err *e) {
    struct finds found = {0};
    struct store *s = xcalloc(1, sizeof *s);
    s->options = *o;
    s->loop = l;
    s->sweeper = (struct timer){.fn = on_sweep, .arg = s};
    s->dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = s->dir < 0 ? err_sys(e, "open directory") : 0;
    if (r < 0 || lock_dir(s->dir, e) < 0 || read_names(s, &found, e) < 0 ||
        load_all(s, &found, e) < 0) {
        free(found.items);
        store_close(s);
        return err_wrap(e, "file store");
    }
    free(found.items);
    set_sweeper(s);
    *ret = s;
    return 0;
}

void store_close(struct store *s) {
    if (!s)
        return;
    loop_timer_stop(s->loop, &s->sweeper);
    for (struct node *n = s->oldest, *next; n; n = next) {
        next = n->newer;
        free_node(n);
    }
    free(s->buckets);
    fd_close(&s->dir);
    free(s);
}

/* Uploads. */

static void free_upload(struct store_upload *u) {
    u->store->pending -= u->size + STORE_FILE_COST;
    fd_close(&u->fd);
    free(u->tenant);
    free(u);
}

static bool has_room(const struct store *s, uint64_t len) {
    uint64_t used = s->bytes + s->pending, most = s->options.total_max;
    return !most || (used <= most && len <= most - used);
}

static int make_room(struct store *s, uint64_t len, struct err *e) {
    while (!has_room(s, len)) {
        if (!sweep(s)) /* what is too old need not wait for the timer */
            return err_user(e, "disk_full", "the store would hold more than %" PRIu64 " bytes",
                            s->options.total_max);
    }
    s->pending += len;
    return 0;
}

/* SECURITY: an empty file takes inodes and a block too, and a program makes a thousand at once. */
int store_begin(struct store *s, const char *tenant, struct store_upload **ret, struct err *e) {
    char id[STORE_ID_LEN + 1];
    int fd;
    if (strlen(tenant) > STORE_TENANT_MAX)
        return err_set(e, EINVAL, "the tenant's name is longer than %d bytes", STORE_TENANT_MAX);
    if (s->nfiles >= STORE_FILES_MAX)
        return err_user(e, "disk_full", "the store holds %u files, the most it takes", s->nfiles);
    if (make_room(s, STORE_FILE_COST, e) < 0)
        return -1;
    make_uuid(id);
    if (create_part(s, id, NEW_DATA, &fd, e) < 0) {
        s->pending -= STORE_FILE_COST;
        return -1;
    }
    struct store_upload *u = xcalloc(1, sizeof *u);
    u->store = s;
    memcpy(u->id, id, sizeof u->id);
    u->tenant = xstrdup(tenant);
    u->fd = fd;
    *ret = u;
    return 0;
}

static int reserve(struct store_upload *u, uint64_t len, struct err *e) {
    struct store *s = u->store;
    uint64_t most = s->options.file_max;
    if (len > INT64_MAX - u->size || (most && len > most - u->size))
        return err_user(e, "file_too_large", "the file has more than %" PRIu64 " bytes",
                        most ? most : INT64_MAX);
    if (make_room(s, len, e) < 0)
        return -1;
    u->size += len;
    return 0;
}

int store_append(struct store_upload *u, const void *data, size_t len, struct err *e) {
    int r = u->failed.code ? -1 : reserve(u, len, &u->failed);
    if (r == 0 && (r = fd_write_all(u->fd, data, len, &u->failed)) < 0)
        store_error(&u->failed);
    if (r < 0)
        *e = u->failed;
    return r;
}

/* Later than all others, also when the clock was set back: the list's order survives a restart. */
static double stamp(const struct store *s) {
    double now = real_now();
    double least = s->newest ? s->newest->entry.uploaded + STAMP_GAP : 0;
    return now > least ? now : least;
}

static int publish(struct store_upload *u, const char *name, struct store_entry *ret,
                   struct err *e) {
    struct store *s = u->store;
    struct store_entry entry = {.size = u->size, .uploaded = stamp(s)};
    struct err ignored;
    memcpy(entry.id, u->id, sizeof entry.id);
    entry.name = clean_name(name);
    entry.tenant = xstrdup(u->tenant);
    if (write_meta(s, &entry, e) < 0 || rename_part(s, u->id, NEW_DATA, DATA, e) < 0) {
        unlink_part(s, u->id, NEW_META, &ignored);
        unlink_part(s, u->id, META, &ignored);
        store_entry_done(&entry);
        return -1;
    }
    const struct node *n = add_node(s, &entry);
    if (!s->sweeper.place)
        set_sweeper(s);
    if (ret)
        entry_copy(&n->entry, ret);
    return 0;
}

int store_finish(struct store_upload *u, const char *name, struct store_entry *ret, struct err *e) {
    *e = u->failed;
    if (u->failed.code || publish(u, name, ret, e) < 0) {
        store_abort(u);
        return -1;
    }
    free_upload(u);
    return 0;
}

void store_abort(struct store_upload *u) {
    struct err e;
    if (!u)
        return;
    fd_close(&u->fd); /* not the last to be closed */
    unlink_part(u->store, u->id, NEW_DATA, &e);
    free_upload(u);
}

int store_give(struct store_upload *u, uint64_t size, int *ret_fd, struct err *e) {
    if (reserve(u, size, e) < 0)
        return -1;
    *ret_fd = fd_take(&u->fd);
    return 0;
}

/* Finding. */

static struct node *look_up(struct store *s, const char *tenant, const char *id, struct err *e) {
    struct node *n = is_uuid(id, strnlen(id, STORE_ID_LEN + 1)) ? find_node(s, id) : NULL;
    if (n && is_old(s, &n->entry, real_now())) {
        remove_node(s, n);
        n = NULL;
    }
    if (n && strcmp(n->entry.tenant, tenant) == 0)
        return n;
    err_user(e, "no_file", "there is no such file");
    return NULL;
}

/* Somebody may have touched the directory behind our back; then the file is gone for us. */
static int open_node(struct store *s, struct node *n, int *ret_fd, struct err *e) {
    struct stat st;
    AUTO_FD fd = -1;
    if (open_part(s, n->entry.id, DATA, &st, &fd, e) < 0) {
        if (e->code != ENOENT && e->code != ELOOP && e->code != EINVAL && e->code != ENXIO)
            return -1;
    } else if ((uint64_t)st.st_size == n->entry.size) {
        *ret_fd = fd_take(&fd);
        return 0;
    }
    drop_node(s, n);
    return err_user(e, "no_file", "there is no such file");
}

int store_find(struct store *s, const char *tenant, const char *id, struct store_entry *ret,
               int *ret_fd, struct err *e) {
    struct node *n = look_up(s, tenant, id, e);
    if (!n || (ret_fd && open_node(s, n, ret_fd, e) < 0))
        return -1;
    if (ret)
        entry_copy(&n->entry, ret);
    return 0;
}

int store_delete(struct store *s, const char *tenant, const char *id, struct err *e) {
    struct node *n = look_up(s, tenant, id, e);
    if (!n || unlink_part(s, id, META, e) < 0 || unlink_part(s, id, DATA, e) < 0)
        return -1;
    drop_node(s, n);
    return 0;
}

void store_list(struct store *s, struct store_cursor *ret) {
    *ret = (struct store_cursor){.store = s, .next = s->cursors, .at = s->newest};
    s->cursors = ret;
}

const struct store_entry *store_list_next(struct store_cursor *c, const char *tenant,
                                          unsigned *looks) {
    double now = real_now();
    while (c->at && *looks > 0) {
        const struct node *n = c->at;
        c->at = n->older;
        --*looks;
        if (!is_old(c->store, &n->entry, now) && strcmp(n->entry.tenant, tenant) == 0)
            return &n->entry;
    }
    return NULL;
}

bool store_list_is_over(const struct store_cursor *c) {
    return !c->at;
}

void store_list_end(struct store_cursor *c) {
    struct store_cursor **at = &c->store->cursors;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

struct store_usage store_usage(const struct store *s) {
    return (struct store_usage){.files = s->nfiles, .bytes = s->bytes};
}
