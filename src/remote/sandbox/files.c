/* `cloche sandbox put` and `get`. A file goes as it is; a directory is packed here, into a file
 * without a name, and unpacked there, or the other way round. */

#include "remote/sandbox/files.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/outdir.h"
#include "cli/report.h"
#include "remote/net/download.h"
#include "remote/sandbox/manage.h"
#include "remote/sandbox/place.h"
#include "remote/sandbox/progress.h"
#include "remote/sandbox/tarball.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where all sources of one call go. */
struct target {
    struct sandbox_cmd *cmd; /* borrowed */
    const char *sandbox;     /* borrowed: its URL's path */
    const char *dest;        /* borrowed */
    bool into;               /* it is a directory: each keeps its name */
};

static bool is_dash(const char *word) {
    return strcmp(word, "-") == 0;
}

static int local_error(const char *path, struct err *e) {
    const char *kind = errno == ENOENT || errno == ENOTDIR ? "no_such_file" : "not_readable";
    return err_user(e, kind, "%s: %s", path, strerror(errno));
}

static void say_skipped(const char *path, unsigned n) {
    AUTO_BUF line = BUF_INIT;
    buf_addf(&line, "%s: %u entr%s left out (links, sockets, devices)", path, n,
             n == 1 ? "y was" : "ies were");
    if (n)
        report_say(line.data);
}

/* ---- put ---- */

struct source {
    int fd; /* owned: what is sent */
    bool is_dir;
    mode_t mode;
    char *name; /* owned: the last of its path */
};

static void source_done(struct source *s) {
    fd_close(&s->fd);
    free(s->name);
}

/* The name that "." or "a/b/.." has. */
static int find_name(const char *path, char **ret, struct err *e) {
    AUTO_FREE char *whole = realpath(path, NULL);
    if (!whole)
        return local_error(path, e);
    *ret = xstrdup(place_name(whole));
    return 0;
}

/* What has no size is read to its end. */
static int spool(const char *path, struct source *s, struct err *e) {
    AUTO_FD to = -1;
    char chunk[65536];
    if (tarball_temporary(&to, e) < 0)
        return -1;
    for (;;) {
        ssize_t n = read(s->fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return local_error(path, e);
        if (n == 0)
            break;
        if (fd_write_all(to, chunk, (size_t)n, e) < 0)
            return err_wrap(e, "%s", path);
    }
    fd_close(&s->fd);
    s->fd = fd_take(&to);
    s->mode = 0644;
    return 0;
}

static int pack(const char *path, struct source *s, struct err *e) {
    unsigned skipped;
    AUTO_FD to = -1;
    if (tarball_temporary(&to, e) < 0 || tarball_pack(path, to, &skipped, e) < 0)
        return -1;
    say_skipped(path, skipped);
    fd_close(&s->fd);
    s->fd = fd_take(&to);
    return 0;
}

static int source_open(const char *path, struct source *s, struct err *e) {
    struct stat st;
    s->fd = is_dash(path) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                          : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0 || fstat(s->fd, &st) < 0)
        return local_error(path, e);
    if (is_dash(path))
        return spool(path, s, e);
    if (find_name(path, &s->name, e) < 0)
        return -1;
    s->mode = st.st_mode & 0777;
    s->is_dir = S_ISDIR(st.st_mode);
    if (s->is_dir)
        return pack(path, s, e);
    return S_ISREG(st.st_mode) ? 0 : spool(path, s, e);
}

static int send_source(const struct target *t, const struct source *s, const char *path,
                       struct err *e) {
    AUTO_BUF url = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    struct progress p;
    place_url(&url, t->sandbox, s->is_dir ? "archive" : "files", path);
    if (!s->is_dir)
        buf_addf(&url, "?mode=%04o", (unsigned)s->mode);
    progress_init(&p, s->name ? s->name : path);
    const struct remote_call c = {.method = "PUT",
                                  .path = url.data,
                                  .upload = s->fd,
                                  .upload_type = s->is_dir
                                                     ? "Content-Type: application/gzip"
                                                     : "Content-Type: application/octet-stream",
                                  .watch = &p.watch};
    int rc = sandbox_cmd_call(t->cmd, &c, &reply, e);
    progress_done(&p);
    return rc;
}

static int put_one(const struct target *t, const char *word, struct err *e) {
    struct source s = {.fd = -1};
    sandbox_cmd_allow_signals(t->cmd, true);
    int rc = source_open(word, &s, e);
    sandbox_cmd_allow_signals(t->cmd, false);
    if (rc == 0 && t->into && !s.name)
        rc = err_user(e, "bad_value", "stdin has no name: DESTINATION must be that of a file");
    AUTO_FREE char *path = place_join(t->dest, rc == 0 && t->into ? s.name : "");
    if (rc == 0)
        rc = send_source(t, &s, path, e);
    source_done(&s);
    return rc;
}

int sandbox_put(struct sandbox_cmd *b, struct err *e) {
    const struct sandbox_words *w = &b->o.words;
    AUTO_BUF sandbox = BUF_INIT;
    AUTO_FREE char *dest = NULL;
    bool into;
    if (place_path(w->items[w->n - 1], &dest, &into, e) < 0 || sandbox_find(b, &sandbox, e) < 0)
        return -1;
    into = into || w->n > 3;
    if (!into) {
        enum place there = PLACE_NONE;
        if (place_look(b, sandbox.data, dest, &there, e) < 0)
            return -1;
        into = there == PLACE_DIRECTORY;
    }
    const struct target t = {b, sandbox.data, dest, into};
    for (unsigned i = 1; i + 1 < w->n; i++)
        if (put_one(&t, w->items[i], e) < 0)
            return -1;
    return 0;
}

/* ---- get ---- */

/* The bytes of a file or an archive into `fd`; `shown` is where they go, for messages. */
static int fetch(struct sandbox_cmd *b, const char *url, int fd, const char *shown, struct err *e) {
    struct download d = {.fd = fd, .left = UINT64_MAX};
    struct progress p;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    const struct remote_sink sink = download_sink(&d);
    progress_init(&p, place_name(shown));
    const struct remote_call c = {.method = "GET",
                                  .path = url,
                                  .upload = -1,
                                  .sink = &sink,
                                  .gives_signs = true,
                                  .watch = &p.watch};
    int rc = sandbox_cmd_call(b, &c, &reply, e);
    progress_done(&p);
    if (rc == 0 && d.failed)
        return err_user(e, "output_failed", "cannot write %s: %s", shown, strerror(d.failed));
    return rc;
}

/* What is there and is no file (a device, a pipe, a link) stays what it is. */
static int get_into(struct sandbox_cmd *b, const char *url, const char *path, struct err *e) {
    AUTO_FD fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return err_user(e, "output_failed", "cannot write %s: %s", path, strerror(errno));
    return fetch(b, url, fd, path, e);
}

/* Written beside it and renamed: it is there as a whole or not at all. */
static int get_file(struct sandbox_cmd *b, const char *url, const char *path, struct err *e) {
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return get_into(b, url, path, e);
    AUTO_BUF temporary = BUF_INIT;
    char id[ID_MAX];
    buf_add(&temporary, path, (size_t)(place_name(path) - path));
    buf_adds(&temporary, id_make(".cloche-", id, sizeof id));
    AUTO_FD fd = open(temporary.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_user(e, "output_failed", "cannot write %s: %s", path, strerror(errno));
    int rc = fetch(b, url, fd, path, e);
    if (rc == 0 && rename(temporary.data, path) < 0)
        rc = err_user(e, "output_failed", "cannot write %s: %s", path, strerror(errno));
    if (rc < 0)
        unlink(temporary.data);
    return rc;
}

static int get_directory(struct sandbox_cmd *b, const char *url, const char *path, struct err *e) {
    AUTO_FD fd = -1;
    struct outdir to = {.path = path, .fd = -1};
    unsigned skipped = 0;
    if (tarball_temporary(&fd, e) < 0 || fetch(b, url, fd, path, e) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "lseek");
    int rc = outdir_open(&to, e);
    if (rc == 0)
        rc = tarball_unpack(fd, &to, &skipped, e);
    outdir_done(&to);
    if (rc == 0)
        say_skipped(path, skipped);
    return rc;
}

static int get_one(const struct target *t, const char *word, struct err *e) {
    AUTO_FREE char *from = NULL;
    AUTO_BUF url = BUF_INIT;
    AUTO_BUF to = BUF_INIT;
    enum place there = PLACE_NONE;
    if (place_path(word, &from, NULL, e) < 0 ||
        place_look(t->cmd, t->sandbox, from, &there, e) < 0 ||
        sandbox_cmd_check_signals(t->cmd, e) < 0)
        return -1;
    place_url(&url, t->sandbox, there == PLACE_DIRECTORY ? "archive" : "files", from);
    if (is_dash(t->dest) && !t->into) {
        sandbox_cmd_allow_signals(t->cmd, true); /* nothing is half done when we end */
        return fetch(t->cmd, url.data, STDOUT_FILENO, "stdout", e);
    }
    buf_adds(&to, t->dest);
    if (t->into)
        buf_addf(&to, "%s%s", to.data[to.len - 1] == '/' ? "" : "/",
                 *from ? place_name(from) : "workspace");
    return (there == PLACE_DIRECTORY ? get_directory : get_file)(t->cmd, url.data, to.data, e);
}

int sandbox_get(struct sandbox_cmd *b, struct err *e) {
    const struct sandbox_words *w = &b->o.words;
    const char *dest = w->items[w->n - 1];
    AUTO_BUF sandbox = BUF_INIT;
    struct stat st;
    bool is_dir = stat(dest, &st) == 0 && S_ISDIR(st.st_mode);
    size_t len = strlen(dest);
    bool into = is_dir || w->n > 3 || (len && dest[len - 1] == '/');
    if (!len)
        return err_user(e, "bad_value", "DESTINATION is empty; it must be a path or -");
    if (into && !is_dir && mkdir(dest, 0777) < 0)
        return err_user(e, "output_failed", "cannot make %s: %s", dest, strerror(errno));
    if (sandbox_find(b, &sandbox, e) < 0)
        return -1;
    const struct target t = {b, sandbox.data, dest, into};
    for (unsigned i = 1; i + 1 < w->n; i++)
        if (get_one(&t, w->items[i], e) < 0)
            return -1;
    return 0;
}
