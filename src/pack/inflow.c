/* See inflow.h. SECURITY: a chain of headers may be as long as somebody likes, the name in the head
 * of a gzip too, and a gzip may be in a gzip in a gzip. Each is a thousand times what was sent. So
 * an archive comes out of one gzip, whose names zlib skips, and in bounded pieces. */

#include "pack/inflow.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define GZIP_BITS    (15 + 16)
#define MEMBER_COSTS 128 /* bytes, so to say: an empty one takes as long as many */

int inflow_begin(struct inflow *f, int fd, struct err *e) {
    uint8_t magic[2];
    *f = (struct inflow){.fd = fd};
    bool is_gzip = pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (is_gzip && inflateInit2(&f->zip, GZIP_BITS) != Z_OK)
        return err_set(e, ENOMEM, "zlib has no memory");
    f->has_zip = is_gzip;
    return 0;
}

void inflow_end(struct inflow *f) {
    if (f->has_zip)
        inflateEnd(&f->zip);
    f->has_zip = false;
}

void inflow_allow(struct inflow *f, uint64_t bytes) {
    f->most = f->work + bytes;
}

static ssize_t fetch(struct inflow *f, const char **ret_why) {
    ssize_t n = pread(f->fd, f->packed, sizeof f->packed, f->at);
    if (n < 0)
        *ret_why = "it cannot be read";
    else
        f->at += n;
    return n;
}

/* A member, or a part of one. 1: there is more, 0: that was all, -1: it is no gzip. */
static int inflate_some(struct inflow *f, const char **ret_why) {
    z_stream *z = &f->zip;
    ssize_t n = z->avail_in ? 0 : fetch(f, ret_why);
    if (n > 0)
        z->next_in = f->packed, z->avail_in = (unsigned)n;
    if (n < 0)
        return -1;
    if (f->between && (z->avail_in == 0 || *z->next_in != 0x1f)) /* what follows is no member */
        return 0;
    *ret_why = "truncated gzip input";
    if (z->avail_in == 0)
        return -1;
    if (f->between) {
        inflateReset(z);
        f->work += MEMBER_COSTS;
    }
    unsigned before = z->avail_in;
    int r = inflate(z, Z_NO_FLUSH);
    f->work += before - z->avail_in;
    f->between = r == Z_STREAM_END;
    *ret_why = "its gzip is damaged";
    return r == Z_OK || r == Z_BUF_ERROR || r == Z_STREAM_END ? 1 : -1;
}

static const char too_much[] = "an entry has too much in its headers";

/* Members may be short, and whoever reads has some work with each piece: so a piece is filled. */
static ssize_t fill(struct inflow *f, const char **ret_why) {
    int more = 1;
    f->zip.next_out = f->plain;
    f->zip.avail_out = sizeof f->plain;
    while (more > 0 && f->zip.avail_out > 0 && f->work < f->most)
        more = inflate_some(f, ret_why);
    ssize_t n = (ssize_t)(sizeof f->plain - f->zip.avail_out);
    if (n > 0 || more <= 0)
        return n > 0 ? n : more;
    *ret_why = too_much;
    return -1;
}

ssize_t inflow_read(struct inflow *f, const void **ret, const char **ret_why) {
    *ret_why = too_much;
    if (f->work >= f->most)
        return -1;
    *ret = f->has_zip ? f->plain : f->packed;
    ssize_t n = f->has_zip ? fill(f, ret_why) : fetch(f, ret_why);
    f->work += n > 0 ? (uint64_t)n : 0;
    return n;
}
