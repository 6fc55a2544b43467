#pragma once
/* The files of a sandbox: questions to its init, and what the server writes onto its disk. This is
 * the one place in the server that speaks init's messages about files.
 *
 * A question is asked with files_ask; its answer comes through the loop, once, typed and checked.
 * Paths are relative to the workspace, and "" is the workspace itself; init resolves them beneath
 * it. What init tells of was named and filled by hostile code. */

#include "engine/core/changes.h"
#include "loop/share.h"
#include "wire/entry.h"

struct sandbox;

/* ---- questions ---- */

enum file_op {
    FILE_READ,   /* path: a regular file, to read from        → fd */
    FILE_CREATE, /* path, mode: a file, made or emptied, to write to  → fd */
    FILE_STAT,   /* path                                      → entry */
    FILE_LIST,   /* path, recursive, most, after: the last path of the page before  → page */
    FILE_MKDIR,  /* path, mode: and the directories above it */
    FILE_MOVE,   /* path, to: nothing is replaced */
    FILE_CHMOD,  /* path, mode */
    FILE_REMOVE, /* path, recursive */
    FILE_TEMP,   /* a file without a name, to write to        → fd */
    FILE_PLACE, /* path, mode, mtime_ns, fd: gives such a file its name, over another  → replaced */
    FILE_LINK,    /* path, to: a symlink to there, over another file */
    FILE_CHANGES, /* most, depth, since_ns: regular files that changed since  → changes, cut */
};

struct file_question {
    enum file_op op;
    const char *path, *to, *after; /* NULL is "" */
    bool recursive;
    uint32_t mode;
    uint32_t most, depth;        /* entries, directories within directories */
    uint64_t mtime_ns, since_ns; /* mtime_ns 0: as it is */
    int fd;                      /* borrowed until files_ask returns */
};

/* Entries of a directory in an order that holds from page to page. */
struct file_page {
    struct buf records;
    size_t at; /* of the next one */
    bool cut;  /* more come after the last one here */
};
#define FILE_PAGE_INIT                                                                             \
    { .records = BUF_INIT }

/* Lives until the callback returns, which takes what it wants to keep. */
struct file_answer {
    const struct err *why; /* NULL: it is done; otherwise the errno and init's words */
    bool gone;             /* the sandbox ended before it answered; `why` says no more than that */
    int fd;                /* owned; or -1 */
    struct entry entry;    /* its strings live as long as this */
    struct file_page page;
    struct changes changes;
    bool cut;      /* there are more changes than that */
    bool replaced; /* another file had that name */
};

/* Who asks: one question at a time. Embedded in its owner, who sets `fn` and `arg`. */
struct file_ask {
    void (*fn)(void *arg, struct file_answer *a); /* may free the owner */
    void *arg;
    /* For files.c: */
    struct sandbox *sandbox; /* borrowed: the one that is asked; NULL: none */
    enum file_op op;
    uint32_t most;
    struct loop_sharer turn; /* a list has come, and waits for a turn that has time for it: */
    int records;             /* owned */
    bool cut;
};

/* False when too much is asked at once, or the sandbox (or NULL) is at its end. The answer may come
 * before it returns, if the sandbox ends by it. */
bool files_ask(struct sandbox *s, const struct file_question *q, struct file_ask *who);
/* The answer is not wanted any more; also when nothing was asked. */
void files_unask(struct file_ask *who);
bool files_is_asked(const struct file_ask *who);

/* 1 and the next entry, whose strings live as long as the page; 0 at the end; -1: it is malformed,
 * which no answer is. */
int file_page_next(struct file_page *p, struct entry *ret);
/* Whether that was the last one. */
bool file_page_is_read(const struct file_page *p);
/* What `to` held is freed, and `from` is empty. */
void file_page_move(struct file_page *to, struct file_page *from);
/* A page with this entry only. */
void file_page_of(struct file_page *to, const struct entry *only);
void file_page_done(struct file_page *p);

/* ---- content ---- */

uint64_t files_room(const struct sandbox *s);       /* bytes that its disk has left */
uint64_t files_room_names(const struct sandbox *s); /* the same in files */
/* Whether the machine has memory for so many bytes of files more; kind "memory_budget". */
int files_fit(const struct sandbox *s, uint64_t bytes, struct err *e);
/* A piece of a file on its disk. All that the server writes there goes through this: tmpfs is
 * memory, and whoever writes is who the kernel charges, so the sandbox is charged here. It never
 * blocks. Kind "memory_budget", or the errno, ENOSPC when the disk is full. */
struct file_piece {
    const void *data;
    size_t len;
    uint64_t at;
};
int files_write(struct sandbox *s, int fd, const struct file_piece *p, struct err *e);
