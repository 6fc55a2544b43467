/* See tarball.h. libarchive reads and writes the format; where files go is decided by outdir.c. */

#include "remote/sandbox/tarball.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/outdir.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK 65536

int tarball_temporary(int *ret_fd, struct err *e) {
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) /* not every file system has them */
        fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "a temporary file");
    *ret_fd = fd;
    return 0;
}

/* ---- in ---- */

struct packing {
    struct archive *disk, *out; /* borrowed */
    const char *root;           /* borrowed */
    unsigned skipped;
};

static int copy_data(struct archive *from, struct archive *to, const char *path, struct err *e) {
    static const char zeros[CHUNK];
    const void *data;
    size_t len;
    la_int64_t at = 0, offset;
    int rc;
    while ((rc = archive_read_data_block(from, &data, &len, &offset)) == ARCHIVE_OK) {
        for (; at < offset; at += CHUNK) { /* a hole */
            size_t n = offset - at < CHUNK ? (size_t)(offset - at) : CHUNK;
            if (archive_write_data(to, zeros, n) < 0)
                return err_user(e, "output_failed", "%s: %s", path, archive_error_string(to));
        }
        at = offset + (la_int64_t)len;
        if (len && archive_write_data(to, data, len) < 0)
            return err_user(e, "output_failed", "%s: %s", path, archive_error_string(to));
    }
    if (rc != ARCHIVE_EOF)
        return err_user(e, "not_readable", "%s: %s", path, archive_error_string(from));
    return 0;
}

static bool is_wanted(struct archive_entry *entry) {
    mode_t type = archive_entry_filetype(entry);
    return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK;
}

static int pack_entry(struct packing *p, struct archive_entry *entry, struct err *e) {
    AUTO_FREE char *path = xstrdup(archive_entry_pathname(entry));
    const char *name = path + strlen(p->root);
    name += strspn(name, "/");
    (void)archive_read_disk_descend(p->disk);
    if (!*name)
        return 0; /* the directory itself */
    if (!is_wanted(entry)) {
        p->skipped++;
        return 0;
    }
    archive_entry_set_pathname(entry, name);
    archive_entry_set_uname(entry, NULL);
    archive_entry_set_gname(entry, NULL);
    archive_entry_set_uid(entry, 0);
    archive_entry_set_gid(entry, 0);
    if (archive_write_header(p->out, entry) < ARCHIVE_WARN)
        return err_user(e, "output_failed", "%s: %s", path, archive_error_string(p->out));
    return archive_entry_filetype(entry) == AE_IFREG ? copy_data(p->disk, p->out, path, e) : 0;
}

static int pack_all(struct packing *p, struct err *e) {
    for (;;) {
        struct archive_entry *entry = archive_entry_new();
        int code = archive_read_next_header2(p->disk, entry);
        int rc = 0;
        if (code < ARCHIVE_WARN)
            rc = err_user(e, "not_readable", "%s", archive_error_string(p->disk));
        else if (code != ARCHIVE_EOF)
            rc = pack_entry(p, entry, e);
        archive_entry_free(entry);
        if (rc < 0 || code == ARCHIVE_EOF)
            return rc;
    }
}

int tarball_pack(const char *path, int to, unsigned *ret_skipped, struct err *e) {
    struct archive *disk = archive_read_disk_new(), *out = archive_write_new();
    AUTO_FREE char *root = xstrdup(path);
    for (size_t n = strlen(root); n > 1 && root[n - 1] == '/';)
        root[--n] = '\0';
    struct packing p = {.disk = disk, .out = out, .root = root};
    archive_read_disk_set_symlink_physical(disk);
    archive_read_disk_set_behavior(disk, ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL |
                                             ARCHIVE_READDISK_NO_FFLAGS);
    archive_write_set_format_pax_restricted(out);
    archive_write_add_filter_gzip(out);
    (void)archive_write_set_filter_option(out, "gzip", "compression-level", "1");
    int rc = archive_write_open_fd(out, to) == ARCHIVE_OK
                 ? 0
                 : err_user(e, "output_failed", "%s", archive_error_string(out));
    if (rc == 0 && archive_read_disk_open(disk, root) != ARCHIVE_OK)
        rc = err_user(e, "not_readable", "%s: %s", path, archive_error_string(disk));
    if (rc == 0)
        rc = pack_all(&p, e);
    *ret_skipped = p.skipped;
    if (archive_write_close(out) != ARCHIVE_OK && rc == 0)
        rc = err_user(e, "output_failed", "%s", archive_error_string(out));
    archive_write_free(out);
    archive_read_free(disk);
    return rc;
}

/* ---- out ---- */

static int unpack_file(struct archive *in, struct archive_entry *entry, const char *name,
                       struct outdir *to, struct err *e) {
    AUTO_FD fd = -1;
    struct stat st;
    if (tarball_temporary(&fd, e) < 0)
        return -1;
    if (archive_read_data_into_fd(in, fd) != ARCHIVE_OK)
        return err_user(e, "output_failed", "%s: %s", name, archive_error_string(in));
    if (fchmod(fd, archive_entry_perm(entry) & 0777) < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "%s", name);
    la_int64_t size = archive_entry_size(entry);
    return outdir_write(to, name, fd, (uint64_t)(size > st.st_size ? size : st.st_size), e);
}

static int unpack_entry(struct archive *in, struct archive_entry *entry, struct outdir *to,
                        unsigned *skipped, struct err *e) {
    const char *name = archive_entry_pathname(entry);
    mode_t type = archive_entry_filetype(entry);
    if (!name)
        return err_user(e, "bad_reply", "an entry of the archive has no name");
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    AUTO_FREE char *plain = xstrdup(name);
    for (size_t n = strlen(plain); n > 0 && plain[n - 1] == '/';)
        plain[--n] = '\0';
    if (!*plain || strcmp(plain, ".") == 0)
        return 0;
    if (archive_entry_hardlink(entry) || (type != AE_IFREG && type != AE_IFDIR)) {
        ++*skipped;
        return 0;
    }
    return type == AE_IFDIR ? outdir_mkdir(to, plain, e) : unpack_file(in, entry, plain, to, e);
}

int tarball_unpack(int from, struct outdir *to, unsigned *ret_skipped, struct err *e) {
    struct archive *in = archive_read_new();
    struct archive_entry *entry;
    int code = ARCHIVE_OK, rc = 0;
    *ret_skipped = 0;
    archive_read_support_filter_gzip(in);
    archive_read_support_format_tar(in);
    if (archive_read_open_fd(in, from, CHUNK) != ARCHIVE_OK)
        rc = err_user(e, "bad_reply", "the archive cannot be read: %s", archive_error_string(in));
    while (rc == 0 && (code = archive_read_next_header(in, &entry)) >= ARCHIVE_WARN &&
           code != ARCHIVE_EOF)
        rc = unpack_entry(in, entry, to, ret_skipped, e);
    if (rc == 0 && code != ARCHIVE_EOF)
        rc = err_user(e, "bad_reply", "the archive cannot be read: %s", archive_error_string(in));
    archive_read_free(in);
    return rc;
}
