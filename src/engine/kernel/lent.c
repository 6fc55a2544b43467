/* See lent.h. SECURITY: the memory file is sealed against growth, so that truncating it frees all
 * its memory, and nobody can seal it against shrinking. */

#include "engine/kernel/lent.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "engine/core/budget.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/kernel_talk.h"
#include "engine/process/live_state.h"
#include "loop/crew.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LENT_MAX (64u << 20) /* bytes in a sandbox beyond which no answer to input() is taken */
#define MAX_LENT 66          /* more than an honest kernel can have unread: see MAX_QUERIES */

/* The next server is told, too: it cannot take back what this one has lent. */
static void lent_count(const struct live *l, uint64_t bytes) {
    l->sandbox->lent_bytes = bytes;
    if (l->lent_told)
        *l->lent_told = bytes;
}

/* Beside the loop: emptying a large file takes long, and a kernel may have many. */
static void take_back(struct kernel *k, struct lent **at) {
    struct lent *it = LIST_POP(at, next);
    const struct live *l = k->live;
    k->nlent--;
    crew_empty(l->engine->crew, &it->fd);
    if (l->sandbox)
        lent_count(l, l->sandbox->lent_bytes - it->len);
    free(it);
}

void lent_end(struct kernel *k) {
    while (k->lent)
        take_back(k, &k->lent);
}

void lent_back(struct kernel *k) {
    if (!k->running && !k->queries)
        lent_end(k);
}

int lent_file(const void *data, size_t len, int *ret_fd, struct err *e) {
    AUTO_FD fd = memfd_create("do", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(e, "memfd_create");
    if (fd_write_all(fd, data, len, e) < 0)
        return -1;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_sys(e, "seal memfd");
    *ret_fd = fd_take(&fd);
    return 0;
}

/* A kernel that asks again has read the last answer. */
static void take_answers_back(struct kernel *k) {
    for (struct lent **at = &k->lent; *at;) {
        if ((*at)->is_answer)
            take_back(k, at);
        else
            at = &(*at)->next;
    }
}

int lent_add(struct kernel *k, int *fd, size_t len, bool is_answer) {
    if (is_answer)
        take_answers_back(k);
    if (k->nlent == MAX_LENT)
        take_back(k, &k->lent);
    struct lent *it = xcalloc(1, sizeof *it);
    *it = (struct lent){.fd = fd_take(fd), .len = len, .is_answer = is_answer};
    LIST_APPEND(&k->lent, it, next);
    k->nlent++;
    lent_count(k->live, k->live->sandbox->lent_bytes + len);
    return it->fd;
}

int lent_fits(const struct kernel *k, size_t len, struct err *e) {
    const struct live *l = k->live;
    uint64_t there = l->sandbox->lent_bytes + kernel_telling_bytes(l);
    if (len <= WIRE_MAX)
        return 0;
    if (there && there + len > LENT_MAX)
        return err_user(e, "stdin_full",
                        "the kernels of this sandbox have %llu bytes to read already; more than %u "
                        "may not wait",
                        (unsigned long long)there, LENT_MAX);
    return budget_fits(l->engine, len, e);
}
