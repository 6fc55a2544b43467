/* See gone.h. A file of lines, appended to as sandboxes come and go, and written anew when a server
 * starts or it has become long: "+ID\tTENANT" and "-ID\tTENANT\tREASON". What can be lost of it is
 * an answer 410, which becomes a 404. */

#include "engine/live/gone.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME     "sandboxes.list"
#define NEXT     "sandboxes.next"
#define MOST     4096        /* remembered at a time; the oldest go first */
#define LINES    16384       /* in the file, until it is written anew; those are below 1 kB each */
#define FILE_MAX (16u << 20) /* bytes that are read back */
#define LOST     "cloche was restarted, and its sandboxes ended with it"

struct entry {
    struct entry *next;
    char *id, *tenant; /* owned */
    char *reason;      /* owned; NULL: it is there */
};

struct gone {
    int dir, file;
    struct entry *first, **end;
    unsigned n, lines;
};

static void free_entry(struct entry *x) {
    free(x->id);
    free(x->tenant);
    free(x->reason);
    free(x);
}

static struct entry **find_entry(struct gone *g, const char *tenant, const char *id) {
    struct entry **at = &g->first;
    while (*at && (strcmp((*at)->id, id) != 0 || strcmp((*at)->tenant, tenant) != 0))
        at = &(*at)->next;
    return at;
}

static void drop(struct gone *g, struct entry **at) {
    struct entry *x = *at;
    *at = x->next;
    if (g->end == &x->next)
        g->end = at;
    g->n--;
    free_entry(x);
}

static void put(struct gone *g, const char *tenant, const char *id, const char *reason) {
    struct entry **old = find_entry(g, tenant, id), *x = xcalloc(1, sizeof *x);
    if (*old)
        drop(g, old);
    *x = (struct entry){
        .id = xstrdup(id), .tenant = xstrdup(tenant), .reason = reason ? xstrdup(reason) : NULL};
    *g->end = x;
    g->end = &x->next;
    g->n++;
    for (struct entry **at = &g->first; g->n > MOST && *at;) {
        if ((*at)->reason)
            drop(g, at);
        else
            at = &(*at)->next;
    }
}

static void put_line(struct buf *to, const char *tenant, const char *id, const char *reason) {
    buf_addf(to, "%c%s\t%s%s%s\n", reason ? '-' : '+', id, tenant, reason ? "\t" : "",
             reason ? reason : "");
}

static void read_line(struct gone *g, char *line) {
    char *rest = line + 1, *id = strsep(&rest, "\t"), *tenant = strsep(&rest, "\t");
    if (!id || !tenant || (line[0] != '+' && line[0] != '-'))
        return;
    put(g, tenant, id, line[0] == '-' ? (rest ? rest : LOST) : LOST);
}

static void read_back(struct gone *g) {
    AUTO_FD fd = openat(g->dir, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX)
        return;
    AUTO_FREE char *text = xcalloc(1, (size_t)st.st_size + 1);
    ssize_t n = pread(fd, text, (size_t)st.st_size, 0);
    char *rest = n > 0 ? text : NULL;
    for (char *line; rest && *rest && (line = strsep(&rest, "\n"));) {
        if (rest) /* else its end was not written */
            read_line(g, line);
    }
}

static int write_anew(struct gone *g, struct err *e) {
    AUTO_BUF all = BUF_INIT;
    AUTO_FD fd = openat(g->dir, NEXT, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0)
        return err_sys(e, "%s", NEXT);
    for (const struct entry *x = g->first; x; x = x->next)
        put_line(&all, x->tenant, x->id, x->reason);
    if (fd_write_all(fd, all.data, all.len, e) < 0)
        return -1;
    if (renameat(g->dir, NEXT, g->dir, NAME) < 0)
        return err_sys(e, "rename %s", NEXT);
    fd_close(&g->file);
    g->file = fd_take(&fd);
    g->lines = g->n;
    return 0;
}

static void append(struct gone *g, const char *tenant, const char *id, const char *reason) {
    AUTO_BUF line = BUF_INIT;
    struct err e;
    if (g->file < 0)
        return;
    put_line(&line, tenant, id, reason);
    if ((g->lines >= LINES && write_anew(g, &e) < 0) ||
        fd_write_all(g->file, line.data, line.len, &e) < 0) {
        log_warn("list of sandboxes not written why=%s", log_text(e.text));
        fd_close(&g->file);
    }
    g->lines++;
}

struct gone *gone_open(int dir) {
    struct gone *g = xcalloc(1, sizeof *g);
    struct err e;
    *g = (struct gone){.dir = dir, .file = -1};
    g->end = &g->first;
    if (dir < 0)
        return g;
    read_back(g);
    if (write_anew(g, &e) < 0)
        log_warn("list of sandboxes not written why=%s", log_text(e.text));
    return g;
}

void gone_expect(struct gone *g, const char *tenant, const char *id) {
    put(g, tenant, id, NULL);
    append(g, tenant, id, NULL);
}

void gone_add(struct gone *g, const char *tenant, const char *id, const char *reason) {
    put(g, tenant, id, reason);
    append(g, tenant, id, reason);
}

const char *gone_find(const struct gone *g, const char *tenant, const char *id) {
    for (const struct entry *x = g->first; x; x = x->next) {
        if (strcmp(x->id, id) == 0 && strcmp(x->tenant, tenant) == 0)
            return x->reason;
    }
    return NULL;
}
