/* See mounts.h. */

#include "wire/mounts.h"

#include <string.h>

#define FORM "it is HOST:PATH or HOST:PATH:rw, as in /srv/data:data"

static int copy(char *to, size_t cap, const char *from, size_t len) {
    if (len == 0 || len >= cap)
        return -1;
    memcpy(to, from, len);
    to[len] = '\0';
    return 0;
}

/* The part of a path that begins at `at`: neither empty nor "." nor "..". */
static bool is_plain(const char *at, size_t n) {
    return n > 0 && !(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.');
}

static bool is_relative(const char *path) {
    for (const char *at = path;;) {
        size_t n = strcspn(at, "/");
        if (!is_plain(at, n))
            return false;
        if (at[n] == '\0')
            return true;
        at += n + 1;
    }
}

bool mount_path_is_good(const char *path) {
    return strlen(path) <= MOUNT_PATH_MAX && is_relative(path);
}

int mount_words_parse(const char *text, struct mount_words *ret, struct err *e) {
    const char *path = strchr(text, ':');
    if (!path)
        return err_user(e, "bad_value", "\"%.200s\" names no place in the workspace; " FORM, text);
    size_t host_len = (size_t)(path - text);
    path++;
    const char *how = strchr(path, ':');
    size_t path_len = how ? (size_t)(how - path) : strlen(path);
    if (how && strcmp(how, ":rw") != 0 && strcmp(how, ":ro") != 0)
        return err_user(e, "bad_value", "\"%.200s\" ends neither with :rw nor with :ro; " FORM,
                        text);
    if (text[0] != '/' || copy(ret->host, sizeof ret->host, text, host_len) < 0)
        return err_user(e, "bad_value",
                        "the directory in \"%.200s\" is not an absolute path of at most %d bytes",
                        text, MOUNT_HOST_MAX);
    if (copy(ret->path, sizeof ret->path, path, path_len) < 0 || !is_relative(ret->path))
        return err_user(e, "bad_value",
                        "the place in \"%.200s\" is not a path below the workspace of at most %d "
                        "bytes, without \"..\"",
                        text, MOUNT_PATH_MAX);
    ret->writable = how && strcmp(how, ":rw") == 0;
    return 0;
}

static bool is_in(const char *path, const char *dir) {
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

int allow_words_parse(const char *text, struct allow_words *ret, struct err *e) {
    size_t n = strcspn(text, ":");
    const char *how = text + n;
    if (*how && strcmp(how, ":rw") != 0 && strcmp(how, ":ro") != 0)
        return err_user(e, "bad_value", "\"%.200s\" ends neither with :rw nor with :ro", text);
    if (text[0] != '/' || copy(ret->host, sizeof ret->host, text, n) < 0 ||
        !is_relative(ret->host + 1))
        return err_user(e, "bad_value",
                        "\"%.200s\" is not an absolute path of at most %d bytes, without \"..\" "
                        "and slashes at its end",
                        text, MOUNT_HOST_MAX);
    ret->writable = strcmp(how, ":rw") == 0;
    return 0;
}

const char *allow_words_below(const struct allow_words *a, const char *path) {
    if (path[0] != '/' || !is_relative(path + 1) || !is_in(path, a->host))
        return NULL;
    const char *rest = path + strlen(a->host);
    return *rest == '/' ? rest + 1 : rest;
}

bool mount_words_clash(const struct mount_words *a, const struct mount_words *b) {
    return is_in(a->path, b->path) || is_in(b->path, a->path);
}
