/* See lent.h. SECURITY: a memory file that cannot grow, for whoever empties it frees what is in it,
 * and that nobody can keep from shrinking. */

#include "engine/kernel/lent.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/list.h"
#include "engine/kernel/kernel.h"
#include "engine/process/live_state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_LENT 66 /* more than an honest kernel can have unread: see MAX_QUERIES */

static void take_oldest_back(struct kernel *k) {
    struct lent *it = LIST_POP(&k->lent, next);
    struct sandbox *s = k->live->sandbox;
    k->nlent--;
    (void)!ftruncate(it->fd, 0);
    fd_close(&it->fd);
    if (s)
        s->lent_bytes -= it->len;
    free(it);
}

void lent_end(struct kernel *k) {
    while (k->lent)
        take_oldest_back(k);
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

int lent_add(struct kernel *k, int *fd, size_t len) {
    if (k->nlent == MAX_LENT)
        take_oldest_back(k);
    struct lent *it = xcalloc(1, sizeof *it);
    *it = (struct lent){.fd = fd_take(fd), .len = len};
    LIST_APPEND(&k->lent, it, next);
    k->nlent++;
    k->live->sandbox->lent_bytes += len;
    return it->fd;
}
