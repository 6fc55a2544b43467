/* tar.gz out; see pack.h. libarchive writes the tar and zlib compresses it: libarchive's own gzip
 * filter cannot be given up in the middle of an entry without either its memory being lost or the
 * rest of the entry, however long, being filled up with zeros first. */

#include "pack/packer.h"

#include "pack/pack_locale.h"

#include "base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

struct packer {
    struct archive *archive;     /* owned */
    struct archive_entry *entry; /* owned */
    void (*sink)(void *arg, const void *data, size_t len);
    void *arg;
    z_stream zip;
    bool has_zip, given_up;
};

/* Compresses it and hands on what comes out. */
static bool squeeze(struct packer *p, const void *data, size_t len, int flush) {
    unsigned char block[16384];
    p->zip.next_in = (unsigned char *)(uintptr_t)data;
    p->zip.avail_in = (unsigned)len;
    do {
        p->zip.next_out = block;
        p->zip.avail_out = sizeof block;
        if (deflate(&p->zip, flush) == Z_STREAM_ERROR)
            return false;
        if (p->zip.avail_out < sizeof block)
            p->sink(p->arg, block, sizeof block - p->zip.avail_out);
    } while (p->zip.avail_out == 0);
    return true;
}

static la_ssize_t packer_on_bytes(struct archive *a, void *arg, const void *data, size_t len) {
    struct packer *p = arg;
    if (!p->given_up && len <= INT32_MAX && squeeze(p, data, len, Z_NO_FLUSH))
        return (la_ssize_t)len;
    archive_set_error(a, EIO, "it was given up");
    return -1;
}

static int failed(struct packer *p, struct err *e) {
    const char *why = archive_error_string(p->archive);
    return err_set(e, EIO, "write the archive: %s", why ? why : "unknown");
}

/* A little compression for little time: others wait meanwhile. */
#define LEVEL     3
#define GZIP_BITS (15 + 16)
#define MEM_LEVEL 8

int packer_new(void (*sink)(void *arg, const void *data, size_t len), void *arg,
               struct packer **ret, struct err *e) {
    struct packer *p = xcalloc(1, sizeof *p);
    PACK_LOCALE;
    p->archive = archive_write_new();
    p->entry = archive_entry_new();
    p->sink = sink;
    p->arg = arg;
    p->has_zip =
        deflateInit2(&p->zip, LEVEL, Z_DEFLATED, GZIP_BITS, MEM_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    if (p->archive && p->entry && p->has_zip &&
        archive_write_set_format_pax_restricted(p->archive) == ARCHIVE_OK &&
        archive_write_set_bytes_per_block(p->archive, 0) == ARCHIVE_OK &&
        archive_write_open(p->archive, p, NULL, packer_on_bytes, NULL) == ARCHIVE_OK) {
        *ret = p;
        return 0;
    }
    err_set(e, ENOMEM, "no tar.gz can be written");
    packer_free(p);
    return -1;
}

int packer_entry(struct packer *p, const struct pack_entry *f, struct err *e) {
    static const unsigned types[] = {
        [PACK_FILE] = AE_IFREG, [PACK_DIRECTORY] = AE_IFDIR, [PACK_SYMLINK] = AE_IFLNK};
    struct archive_entry *a = archive_entry_clear(p->entry);
    PACK_LOCALE;
    archive_entry_set_pathname(a, f->path);
    archive_entry_set_filetype(a, types[f->type]);
    archive_entry_set_perm(a, f->mode & 0777);
    archive_entry_set_size(a, f->type == PACK_FILE ? (int64_t)f->size : 0);
    archive_entry_set_mtime(a, (time_t)(f->mtime_ns / 1000000000u),
                            (long)(f->mtime_ns % 1000000000u));
    if (f->type == PACK_SYMLINK)
        archive_entry_set_symlink(a, f->target);
    return archive_write_header(p->archive, a) < ARCHIVE_WARN ? failed(p, e) : 0;
}

int packer_data(struct packer *p, const void *data, size_t len, struct err *e) {
    PACK_LOCALE;
    return archive_write_data(p->archive, data, len) < 0 ? failed(p, e) : 0;
}

int packer_end(struct packer *p, struct err *e) {
    PACK_LOCALE;
    return archive_write_close(p->archive) < ARCHIVE_WARN || !squeeze(p, "", 0, Z_FINISH)
               ? failed(p, e)
               : 0;
}

void packer_free(struct packer *p) {
    if (!p)
        return;
    p->given_up = true; /* what is not ended would write its end now */
    archive_write_free(p->archive);
    archive_entry_free(p->entry);
    if (p->has_zip)
        deflateEnd(&p->zip);
    free(p);
}
