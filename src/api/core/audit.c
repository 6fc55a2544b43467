/* See audit.h. Lines are appended in one piece (O_APPEND), so lines of two servers never mix. The
 * file's room is taken without making it longer (FALLOC_FL_KEEP_SIZE): who reads it sees lines
 * only. A file that somebody moved away or deleted is left to them, and a new one begun. */

#include "api/core/audit.h"

#include "api/core/call.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "keys/keys.h"
#include "keys/links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME      "audit.log"
#define AHEAD     (4u << 20)   /* room that is taken at a time */
#define LOW       (256u << 10) /* with less than that nothing new begins: it is for what runs */
#define LINES_MAX (16u << 20)  /* bytes of lines that wait */
#define AGAIN_MS  1000

void audit_code(struct audit_code *to, const char *code, size_t len, bool keep) {
    uint8_t hash[32];
    keys_sha256(code, len, hash);
    audit_code_of(to, hash, code, len, keep);
}

void audit_code_of(struct audit_code *to, const uint8_t hash[32], const char *code, size_t len,
                   bool keep) {
    for (int i = 0; i < 32; i++)
        snprintf(to->sha256 + 2 * i, 3, "%02x", hash[i]);
    to->len = len;
    to->text = keep ? xmalloc(len + 1) : NULL;
    if (keep)
        memcpy(to->text, code, len);
}

void audit_code_done(struct audit_code *c) {
    free(c->text);
    c->text = NULL;
}

static int audit_fail(struct audit *a, const char *what) {
    if (!*a->why)
        log_error("audit log error=%s", log_text(strerror(errno)));
    snprintf(a->why, sizeof a->why, "%s: %s", what, strerror(errno));
    a->failures++;
    loop_timer_in_ms(a->o.loop, &a->again, AGAIN_MS);
    return -1;
}

/* ---- the file ---- */

/* A server that was killed may have left half a line. */
static bool is_cut(int fd, const struct stat *st) {
    char last;
    return st->st_size > 0 && pread(fd, &last, 1, st->st_size - 1) == 1 && last != '\n';
}

static int open_file(struct audit *a, struct stat *ret) {
    const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    AUTO_FD fd = openat(a->o.dir, NAME, flags, 0640);
    if (fd < 0 || fstat(fd, ret) < 0)
        return audit_fail(a, "open the audit log");
    if (is_cut(fd, ret) && write(fd, "\n", 1) == 1)
        ret->st_size++;
    a->fd = fd_take(&fd);
    a->taken = 0;
    return 0;
}

/* The one that has the log's name. */
static int find_file(struct audit *a, struct stat *ret) {
    struct stat named;
    if (a->fd >= 0 && fstat(a->fd, ret) == 0 &&
        fstatat(a->o.dir, NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == ret->st_ino &&
        named.st_dev == ret->st_dev)
        return 0;
    fd_close(&a->fd);
    return open_file(a, ret);
}

static void name_of(unsigned number, char to[32]) {
    snprintf(to, 32, number ? NAME ".%u" : NAME, number);
}

/* The room beyond its end is given back. */
static void close_file(struct audit *a) {
    struct stat st;
    if (a->fd >= 0 && !a->plain && fstat(a->fd, &st) == 0)
        (void)!ftruncate(a->fd, st.st_size);
    fd_close(&a->fd);
}

/* audit.log becomes audit.log.1, and so on; what was the last is replaced. */
static int rotate(struct audit *a, struct stat *ret) {
    char from[32], to[32];
    close_file(a);
    for (unsigned i = a->o.files; i > 0; i--) {
        name_of(i - 1, from);
        name_of(i, to);
        if (renameat(a->o.dir, from, a->o.dir, to) < 0 && errno != ENOENT)
            return audit_fail(a, "rotate the audit log");
    }
    return open_file(a, ret);
}

/* Takes room for so much behind the end. */
static int take_room(struct audit *a, const struct stat *st, size_t bytes) {
    uint64_t end = (uint64_t)st->st_size;
    if (a->plain || (a->taken >= end + bytes && a->taken >= end + AHEAD / 2))
        return 0;
    uint64_t want = bytes + AHEAD;
    if (fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)end, (off_t)want) == 0)
        a->taken = end + want;
    else if (errno == EOPNOTSUPP || errno == ENOSYS)
        a->plain = true;
    else
        return audit_fail(a, "take room for the audit log");
    return 0;
}

/* ---- lines ---- */

static int write_lines(struct audit *a) {
    ssize_t n;
    while (a->lines.len && (n = write(a->fd, a->lines.data, a->lines.len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return audit_fail(a, "write the audit log");
        buf_drop(&a->lines, (size_t)n); /* the rest of a line follows, when there is room */
    }
    a->nlines = 0;
    return 0;
}

/* All that waits, and room for more. The lines go out if there is any way: that room is short is
 * told, and tried again. */
static int audit_catch_up(struct audit *a) {
    struct stat st = {0}; /* for the analyser */
    if (find_file(a, &st) < 0)
        return -1;
    if (st.st_size > 0 && (uint64_t)st.st_size + a->lines.len > a->o.max_bytes &&
        rotate(a, &st) < 0)
        return -1;
    int room = take_room(a, &st, a->lines.len);
    if (write_lines(a) < 0 || room < 0)
        return -1;
    if (*a->why)
        log_info("audit log is written again");
    a->why[0] = '\0';
    return 0;
}

static void audit_on_again(struct timer *t) {
    audit_catch_up(t->arg);
}

void audit_open(struct audit *ret, const struct audit_options *o) {
    *ret = (struct audit){.o = *o, .fd = -1, .lines = BUF_INIT};
    ret->again = (struct timer){.fn = audit_on_again, .arg = ret};
    audit_catch_up(ret);
}

void audit_close(struct audit *a) {
    audit_catch_up(a);
    close_file(a);
    loop_timer_stop(a->o.loop, &a->again);
}

const char *audit_trouble(const struct audit *a) {
    return *a->why ? a->why : NULL;
}

/* Whether something new may begin: the last of the room is kept for what runs already. */
static bool is_safe(const struct audit *a) {
    struct stat st;
    return a->lines.len == 0 && a->fd >= 0 && fstat(a->fd, &st) == 0 && !a->plain &&
           a->taken >= (uint64_t)st.st_size + LOW;
}

bool audit_refuses(const struct audit *a) {
    return *a->why && !a->o.lets && !is_safe(a);
}

int audit_lets(struct audit *a, struct problem *ret) {
    if (!audit_refuses(a) || audit_catch_up(a) == 0 || !audit_refuses(a))
        return 0;
    return problem_set(ret, "audit_unavailable", "nothing runs that cannot be audited: %s", a->why);
}

static void put_time(struct jw *j) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    jw_key_real(j, "time", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
}

/* One that is whole but for its end; `of`: whose it is. */
static void add_line(struct audit *a, struct buf *line, const char *of) {
    buf_addc(line, '\n');
    if (a->lines.len + line->len > LINES_MAX && *a->why) {
        log_error("audit line lost execution=%s", of);
        a->lost++;
        return;
    }
    buf_add(&a->lines, line->data, line->len);
    a->nlines++;
    audit_catch_up(a);
}

void audit_write(struct audit *a, const struct audit_line *l) {
    AUTO_BUF line = BUF_INIT;
    struct jw j = JW_INIT(&line);
    jw_object(&j);
    put_time(&j);
    jw_key_str(&j, "execution", l->execution);
    jw_key_str(&j, "request", l->who->request);
    jw_key_str(&j, "tenant", l->who->tenant);
    jw_key_str(&j, "key", l->who->key[0] ? l->who->key : NULL);
    jw_key_str(&j, "code_sha256", l->code->sha256);
    jw_key_uint(&j, "code_bytes", l->code->len);
    if (l->code->text) {
        jw_key(&j, "code");
        jw_strn(&j, l->code->text, l->code->len);
    }
    jw_key_str(&j, "status", l->status);
    jw_key_str(&j, "profile", l->profile);
    if (l->receipt)
        jw_key_real(&j, "cpu_ms", l->receipt->cpu_ms);
    else
        jw_key_null(&j, "cpu_ms");
    jw_key(&j, "denied");
    jw_array(&j);
    for (unsigned i = 0; i < l->denied->n; i++)
        jw_str(&j, l->denied->all[i].op);
    jw_array_end(&j);
    jw_object_end(&j);
    add_line(a, &line, l->execution);
}

void audit_link(struct audit *a, const struct caller *who, const struct link_claim *link) {
    AUTO_BUF line = BUF_INIT;
    struct jw j = JW_INIT(&line);
    jw_object(&j);
    put_time(&j);
    jw_key_str(&j, "sandbox", link->sandbox);
    jw_key_str(&j, "request", who->request);
    jw_key_str(&j, "tenant", who->tenant);
    jw_key_str(&j, "key", who->key[0] ? who->key : NULL);
    jw_key_uint(&j, "link_port", link->port);
    jw_key_uint(&j, "link_expires", link->expires);
    jw_object_end(&j);
    add_line(a, &line, link->sandbox);
}

void audit_network(struct audit *a, const struct audit_network *n) {
    AUTO_BUF line = BUF_INIT;
    struct jw j = JW_INIT(&line);
    jw_object(&j);
    put_time(&j);
    jw_key_str(&j, strncmp(n->id, "sbx_", 4) == 0 ? "sandbox" : "execution", n->id);
    jw_key_str(&j, "tenant", n->tenant);
    jw_key_str(&j, "network", n->target);
    jw_key_bool(&j, "refused", n->refused);
    jw_key_str(&j, "rule", n->rule);
    jw_object_end(&j);
    add_line(a, &line, n->id);
}
