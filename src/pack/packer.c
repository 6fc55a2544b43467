/* tar.gz out; see pack.h. */

#include "pack/internal.h"
#include "pack/pack.h"

#include "base/buf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>

struct packer {
    struct archive *archive;     /* owned */
    struct archive_entry *entry; /* owned */
    void (*sink)(void *arg, const void *data, size_t len);
    void *arg;
};

locale_t pack_locale_enter(void) {
    static locale_t utf8; /* made once */
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return uselocale(utf8); /* nothing changes where there is none */
}

void pack_locale_leave(locale_t *old) {
    uselocale(*old);
}

static la_ssize_t on_bytes(struct archive *a, void *arg, const void *data, size_t len) {
    const struct packer *p = arg;
    (void)a;
    p->sink(p->arg, data, len);
    return (la_ssize_t)len;
}

static int failed(struct packer *p, struct err *e) {
    const char *why = archive_error_string(p->archive);
    return err_set(e, EIO, "write the archive: %s", why ? why : "unknown");
}

/* A little compression for little time: others wait meanwhile. */
int packer_new(void (*sink)(void *arg, const void *data, size_t len), void *arg,
               struct packer **ret, struct err *e) {
    struct packer *p = xcalloc(1, sizeof *p);
    PACK_LOCALE;
    *p = (struct packer){archive_write_new(), archive_entry_new(), sink, arg};
    if (p->archive && p->entry && archive_write_add_filter_gzip(p->archive) == ARCHIVE_OK &&
        archive_write_set_format_pax_restricted(p->archive) == ARCHIVE_OK &&
        archive_write_set_options(p->archive, "gzip:compression-level=3,gzip:!timestamp") ==
            ARCHIVE_OK &&
        archive_write_set_bytes_per_block(p->archive, 0) == ARCHIVE_OK &&
        archive_write_open(p->archive, p, NULL, on_bytes, NULL) == ARCHIVE_OK) {
        *ret = p;
        return 0;
    }
    err_set(e, ENOMEM, "libarchive does not write tar.gz");
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
    return archive_write_close(p->archive) < ARCHIVE_WARN ? failed(p, e) : 0;
}

static void to_nobody(void *arg, const void *data, size_t len) {
    (void)arg, (void)data, (void)len;
}

void packer_free(struct packer *p) {
    if (!p)
        return;
    p->sink = to_nobody; /* what is not ended would write its end now */
    if (p->archive) {
        archive_write_fail(p->archive);
        archive_write_free(p->archive);
    }
    archive_entry_free(p->entry);
    free(p);
}
