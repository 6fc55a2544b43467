/* See meta.h. */

#include "engine/store/meta.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define META_MAX 16384 /* a name and a tenant with every byte escaped fit */

static void cut_name(char *name) {
    size_t len = strlen(name);
    if (len <= STORE_NAME_MAX)
        return;
    for (len = STORE_NAME_MAX; (name[len] & 0xc0) == 0x80; len--)
        ;
    name[len] = '\0';
}

/* JSON never makes it shorter, so four bytes more than the bound are enough to begin with: a
 * character cut in two there ends up beyond it. */
char *meta_clean_name(const char *name) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    struct err e;
    json_auto_t *root = NULL;
    jw_array(&j);
    jw_strn(&j, name, strnlen(name, STORE_NAME_MAX + 4));
    jw_array_end(&j);
    const char *clean = "";
    if (json_read(text.data, text.len, 1, &root, &e) == 0)
        clean = json_string_value(json_array_get(root, 0));
    char *out = xstrdup(clean && *clean ? clean : "unnamed");
    cut_name(out);
    return out;
}

int meta_write(const struct disk *d, const struct store_entry *entry, struct err *e) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    jw_object(&j);
    jw_key_str(&j, "file_id", entry->id);
    jw_key_str(&j, "filename", entry->name);
    jw_key_uint(&j, "size_bytes", entry->size);
    jw_key_real(&j, "upload_time", entry->uploaded);
    jw_key_str(&j, "tenant", entry->tenant);
    jw_object_end(&j);
    AUTO_FD fd = -1;
    if (disk_create(d, entry->id, DISK_NEW_META, &fd, e) < 0)
        return -1;
    if (fd_write_all(fd, text.data, text.len, e) < 0) {
        err_wrap(e, "meta of %s", entry->id);
        return disk_error(e);
    }
    return disk_rename(d, entry->id, DISK_NEW_META, DISK_META, e);
}

int meta_read(const struct disk *d, const char *id, struct store_entry *ret, struct err *e) {
    AUTO_FD fd = -1;
    struct stat st;
    char text[META_MAX + 1];
    size_t len;
    json_auto_t *root = NULL;
    if (disk_open(d, id, DISK_META, &st, &fd, e) < 0 ||
        fd_read_all(fd, text, sizeof text, &len, e) < 0 || json_read(text, len, 2, &root, e) < 0)
        return -1;
    const char *file_id, *name, *tenant = "";
    json_int_t size;
    double uploaded;
    if (json_unpack(root, "{s:s, s:s, s:I, s:F, s?s}", "file_id", &file_id, "filename", &name,
                    "size_bytes", &size, "upload_time", &uploaded, "tenant", &tenant) < 0 ||
        strcmp(file_id, id) != 0 || size < 0)
        return err_set(e, EINVAL, "meta of %s: not one of ours", id);
    *ret = (struct store_entry){.size = (uint64_t)size, .uploaded = uploaded};
    memcpy(ret->id, id, sizeof ret->id);
    ret->name = meta_clean_name(name);
    ret->tenant = xstrdup(tenant);
    return 0;
}
