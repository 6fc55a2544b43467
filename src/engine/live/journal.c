/* See journal.h. A page of head, which is mapped, and room for two texts: the one that counts, and
 * the one that is being written. */

#include "engine/live/journal.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD     4096
#define TEXT_MAX (8u << 20)
#define SIZE     (HEAD + 2 * (off_t)TEXT_MAX)

struct head {
    uint64_t counter;
    uint32_t active; /* which text counts; any number above 1: none yet */
    uint32_t len[2];
    uint32_t version;
    char id[64], tenant[512]; /* each ends with a NUL; "" when it did not fit */
    uint64_t lent;            /* bytes */
};
_Static_assert(sizeof(struct head) <= HEAD, "it is a page");

/* What lasts, at the beginning of a text that this server has written. */
struct lasting {
    uint64_t edition; /* 0: none */
    size_t len;
};

struct journal {
    int fd;            /* owned */
    struct head *head; /* owned: a mapping */
    struct lasting lasting[2];
};

static int map(int *fd, struct journal **ret, struct err *e) {
    void *head = mmap(NULL, HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (head == MAP_FAILED)
        return err_sys(e, "map a journal");
    struct journal *j = xcalloc(1, sizeof *j);
    j->fd = fd_take(fd);
    j->head = head;
    *ret = j;
    return 0;
}

static void put_name(char *to, size_t cap, const char *name) {
    if (strlen(name) < cap)
        memcpy(to, name, strlen(name) + 1);
}

int journal_new(struct journal **ret, const char *tenant, const char *id, struct err *e) {
    AUTO_FD fd = memfd_create("journal", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, SIZE) < 0)
        return err_sys(e, "make a journal");
    if (map(&fd, ret, e) < 0)
        return -1;
    struct head *head = (*ret)->head;
    head->active = UINT32_MAX;
    head->version = JOURNAL_VERSION;
    put_name(head->tenant, sizeof head->tenant, tenant);
    put_name(head->id, sizeof head->id, id);
    return 0;
}

int journal_open(int *fd, struct journal **ret, struct buf *text, struct err *e) {
    struct stat st;
    if (fstat(*fd, &st) < 0 || st.st_size != SIZE)
        return err_set(e, EPROTO, "a journal has the wrong size");
    if (map(fd, ret, e) < 0)
        return -1;
    const struct journal *j = *ret;
    if (j->head->version > JOURNAL_VERSION)
        return err_set(e, EPROTONOSUPPORT,
                       "its journal is of version %u, and this server reads up to %d: another "
                       "build of cloche wrote it",
                       j->head->version, JOURNAL_VERSION);
    uint32_t at = j->head->active, len = at < 2 ? j->head->len[at] : 0;
    if (len == 0 || len > TEXT_MAX)
        return err_set(e, EPROTO, "a journal is empty");
    char *to = buf_reserve(text, len);
    if (pread(j->fd, to, len, HEAD + (off_t)at * TEXT_MAX) != (ssize_t)len)
        return err_set(e, EPROTO, "a journal is cut");
    buf_commit(text, len);
    return 0;
}

void journal_free(struct journal *j) {
    if (!j)
        return;
    munmap(j->head, HEAD);
    fd_close(&j->fd);
    free(j);
}

static const char *get_name(const char *name, size_t cap) {
    return strnlen(name, cap) < cap ? name : "";
}

const char *journal_tenant(const struct journal *j) {
    return get_name(j->head->tenant, sizeof j->head->tenant);
}

const char *journal_id(const struct journal *j) {
    return get_name(j->head->id, sizeof j->head->id);
}

int journal_fd(const struct journal *j) {
    return j->fd;
}

/* The text that does not count. */
static uint32_t next_text(const struct journal *j) {
    return j->head->active == 0 ? 1 : 0;
}

bool journal_needs(const struct journal *j, uint64_t edition) {
    return j->lasting[next_text(j)].edition != edition;
}

static bool put_part(const struct journal *j, uint32_t at, size_t from, const struct buf *text) {
    off_t to = HEAD + (off_t)at * TEXT_MAX + (off_t)from;
    return from + text->len <= TEXT_MAX &&
           pwrite(j->fd, text->data, text->len, to) == (ssize_t)text->len;
}

void journal_write(struct journal *j, uint64_t edition, const struct buf *lasting,
                   const struct buf *rest) {
    uint32_t at = next_text(j);
    struct lasting *l = &j->lasting[at];
    if (journal_needs(j, edition))
        *l = (struct lasting){put_part(j, at, 0, lasting) ? edition : 0, lasting->len};
    if (l->edition != edition || !put_part(j, at, l->len, rest)) {
        log_warn("journal not written bytes=%zu", l->len + rest->len);
        return;
    }
    j->head->version = JOURNAL_VERSION; /* an earlier server may have written the other text */
    j->head->len[at] = (uint32_t)(l->len + rest->len);
    __atomic_store_n(&j->head->active, at, __ATOMIC_RELEASE);
}

uint64_t *journal_counter(struct journal *j) {
    return &j->head->counter;
}

uint64_t *journal_lent(struct journal *j) {
    return &j->head->lent;
}
