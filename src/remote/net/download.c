/* See download.h. */

#include "remote/net/download.h"

#include "base/err.h"
#include "base/fd.h"
#include "remote/net/call.h"

#include <errno.h>

static bool download_take(void *arg, const char *data, size_t len) {
    struct download *d = arg;
    struct err e;
    if (d->failed)
        return true;
    if (len > d->left)
        d->failed = EFBIG;
    else if (fd_write_all(d->fd, data, len, &e) < 0)
        d->failed = e.code ? e.code : EIO;
    else
        d->left -= len;
    return true;
}

static bool download_is_over(void *arg) {
    const struct download *d = arg;
    return d->failed != 0;
}

struct remote_sink download_sink(struct download *d) {
    return (struct remote_sink){.arg = d, .take = download_take, .is_over = download_is_over};
}
