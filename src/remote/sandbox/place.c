/* See place.h. */

#include "remote/sandbox/place.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/url.h"
#include "remote/value.h"

#include <jansson.h>
#include <string.h>

#define WORKSPACE "/workspace"

int place_path(const char *word, char **ret, bool *ret_is_dir, struct err *e) {
    const char *p = word;
    size_t n = strlen(WORKSPACE);
    AUTO_BUF path = BUF_INIT;
    char quoted[120];
    if (strncmp(p, WORKSPACE, n) == 0 && (p[n] == '/' || p[n] == '\0'))
        p += n + (p[n] == '/');
    else if (*p == '/')
        return err_user(e, "bad_value",
                        "the path in the sandbox is %s; it must be below /workspace",
                        log_quote(word, quoted, sizeof quoted));
    bool is_dir = *p == '\0';
    while (*(p += strspn(p, "/"))) {
        size_t len = strcspn(p, "/");
        bool is_dot = len == 1 && *p == '.';
        if (len == 2 && strncmp(p, "..", 2) == 0)
            return err_user(e, "bad_value", "the path in the sandbox is %s; it must not have ..",
                            log_quote(word, quoted, sizeof quoted));
        is_dir = is_dot || p[len] == '/';
        if (!is_dot) {
            if (path.len)
                buf_addc(&path, '/');
            buf_add(&path, p, len);
        }
        p += len;
    }
    if (ret_is_dir)
        *ret_is_dir = is_dir || !path.len;
    *ret = xstrdup(path.data);
    return 0;
}

void place_url(struct buf *to, const char *sandbox, const char *what, const char *path) {
    buf_clear(to);
    buf_addf(to, "%s/%s/", sandbox, what);
    url_encode(to, path, "/");
}

static bool says_no_such_path(const struct remote_reply *reply) {
    json_error_t ignored;
    json_auto_t *root = json_loadb(reply->body.data, reply->body.len, 0, &ignored);
    return reply->status == 404 &&
           strcmp(value_text(json_object_get(root, "error"), "code"), "no_such_path") == 0;
}

/* Asks for the first byte: a file gives it, or has none (416); a directory is a list all the same,
 * which has no ETag. */
int place_look(struct sandbox_cmd *b, const char *sandbox, const char *path, enum place *ret,
               struct err *e) {
    AUTO_BUF url = BUF_INIT;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    if (!*path) {
        *ret = PLACE_DIRECTORY;
        return 0;
    }
    place_url(&url, sandbox, "files", path);
    buf_adds(&url, "?limit=1");
    const struct remote_call c = {
        .method = "GET", .path = url.data, .header = "Range: bytes=0-0", .upload = -1};
    if (remote_do(b->r, &c, &reply, e) < 0)
        return -1;
    if (says_no_such_path(&reply))
        *ret = PLACE_NONE;
    else if (reply.status == 206 || reply.status == 416 || (reply.status == 200 && reply.has_etag))
        *ret = PLACE_FILE;
    else if (reply.status == 200)
        *ret = PLACE_DIRECTORY;
    else
        return sandbox_cmd_refused(b, &reply, e);
    return 0;
}

const char *place_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *place_join(const char *dir, const char *name) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s%s%s", dir, *dir && *name ? "/" : "", name);
    buf_addc(&b, '\0'); /* so that there is always something to take */
    return buf_take(&b);
}
