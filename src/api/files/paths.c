/* See paths.h. */

#include "api/files/paths.h"

#include "base/url.h"
#include "engine/core/files.h"

#include <stdio.h>
#include <string.h>

const char paths_deep[] = "File paths have at most 64 components.";
_Static_assert(ENTRY_DEPTH_MAX == 64, "paths_deep says so");

void paths_wrong(const char *wrong, const char *path, char *out, size_t cap) {
    if (wrong == paths_deep)
        snprintf(out, cap, "%s This one has more: %.60s%s", wrong, path,
                 strlen(path) > 60 ? "..." : "");
    else
        snprintf(out, cap, "%s", wrong);
}

const char *paths_normal(char *path) {
    if (path[0] == '/')
        return "File paths must be relative.";
    char *to = path;
    for (char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        bool more = at[len] == '/';
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return "File paths must not contain '..'.";
        if (len > 0 && !(len == 1 && at[0] == '.')) {
            if (to != path)
                *to++ = '/';
            memmove(to, at, len);
            to += len;
        }
        at += len + more;
    }
    *to = '\0';
    return entry_depth(path) > ENTRY_DEPTH_MAX ? paths_deep : NULL;
}

const char *paths_clean(char *path, bool entry_is_free) {
    const char *wrong = paths_normal(path);
    if (wrong)
        return wrong;
    if (*path == '\0')
        return "File path must not be empty.";
    if (!entry_is_free && strcmp(path, "__main__.py") == 0)
        return "File path '__main__.py' is reserved for the execution entrypoint.";
    return NULL;
}

const char *paths_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void paths_encode(const char *path, struct buf *to) {
    url_encode(to, path, "/");
}

void paths_disposition(const char *name, struct buf *to) {
    bool ascii = true;
    buf_adds(to, "attachment; filename=\"");
    for (const char *c = name; *c; c++) {
        bool odd = *c < 32 || *c >= 127 || *c == '"' || *c == '\\';
        ascii &= !odd;
        if ((*c & 0xc0) != 0x80) /* one mark for a character, not for each of its bytes */
            buf_addc(to, odd ? '_' : *c);
    }
    buf_adds(to, "\"");
    if (ascii)
        return;
    buf_adds(to, "; filename*=UTF-8''");
    url_encode(to, name, "");
}
