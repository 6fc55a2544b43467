/* See inputs.h. */

#include "api/jobs/inputs.h"

#include "api/core/body.h"
#include "api/files/paths.h"
#include "base/base64.h"
#include "base/fd.h"
#include "engine/core/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char *const encodings[] = {"utf8", "base64", NULL};
static const struct field file_fields[] = {
    {.name = "path",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .help = "where the program finds it, relative to its directory"},
    {.name = "file_id",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED,
     .unless = "content",
     .help = "of an uploaded file"},
    {.name = "content",
     .type = FIELD_STRING,
     .flags = FIELD_LONG,
     .help = "the file itself, instead of file_id"},
    {.name = "encoding",
     .type = FIELD_STRING,
     .words = encodings,
     .fallback = "\"utf8\"",
     .help = "of content"},
};
const struct schema inputs_schema = {"ExecuteFile", file_fields, 4, true};

struct inputs {
    struct input_file **items;
    unsigned *n;
};

static bool is_base64(const json_t *file) {
    return strcmp(field_str(file, "encoding", "utf8"), "base64") == 0;
}

static int bad_base64(const json_t *f, struct problem *p) {
    char text[300];
    snprintf(text, sizeof text, "the content of file '%.200s' is not base64",
             field_str(f, "path", ""));
    return problem_set(p, "bad_base64", "%s", text);
}

/* A file that the request itself brings. Most are small, and no files until they are there. */
static int inline_file(const struct inputs_source *s, const json_t *f, struct input_file *ret,
                       struct problem *p) {
    const json_t *content = json_object_get(f, "content");
    const struct body_text *made = body_find(s->large, content);
    const char *text = json_string_value(content);
    size_t len = json_string_length(content);
    struct err e;
    AUTO_BUF bytes = BUF_INIT;
    if (made && made->is_bad)
        return bad_base64(f, p);
    if (!made && !is_base64(f))
        buf_add(&bytes, text, len);
    else if (!made && !base64_decode(&bytes, text, len))
        return bad_base64(f, p);
    ret->size = bytes.len;
    if (!made && bytes.len <= INPUT_BYTES) {
        buf_addc(&bytes, '\0'); /* an empty one has bytes, too */
        ret->bytes = buf_take(&bytes);
        return 0;
    }
    int r = made ? body_memfd(s->large, content, &ret->fd, &e)
                 : memfd_of("file", bytes.data, bytes.len, &ret->fd, &e);
    if (r < 0)
        *p = problem_of(&e);
    return r;
}

static int stored_file(const struct caller *who, const json_t *f, int *ret_fd, struct problem *p) {
    const char *path = field_str(f, "path", ""), *id = field_str(f, "file_id", "");
    struct err e;
    char text[400];
    if (store_find(who->api->o.store, who->tenant, id, NULL, ret_fd, &e) == 0)
        return 0;
    if (strcmp(e.kind, "no_file") != 0) {
        *p = problem_of(&e);
        return -1;
    }
    snprintf(text, sizeof text, "File with ID '%.100s' not found for path '%.200s'.", id, path);
    return problem_set(p, "no_file", "%s", text);
}

/* A request may bring a thousand files, and each is a descriptor for as long as it waits. The
 * system gives the lowest number that is free, so a high one says how many are in use; the rest is
 * for connections and sandboxes, and for the warden, without whom the server ends. */
static bool is_too_many(int fd) {
    struct rlimit files;
    return fd >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 && (rlim_t)fd >= files.rlim_cur / 2;
}

static int add_file(const struct inputs_source *s, struct inputs *to, const json_t *f,
                    struct problem *p) {
    bool stored = field_str(f, "file_id", NULL);
    struct err e;
    struct input_file file = {.mode = 0644, .fd = -1};
    if ((stored ? stored_file(s->who, f, &file.fd, p) : inline_file(s, f, &file, p)) < 0)
        return -1;
    if (is_too_many(file.fd)) {
        fd_close(&file.fd);
        err_user(&e, "no_descriptors", "the requests under way have as many files as fit");
        *p = problem_of(&e);
        return -1;
    }
    file.path = xstrdup(field_str(f, "path", ""));
    *to->items = xrealloc(*to->items, (*to->n + 1) * sizeof **to->items);
    (*to->items)[(*to->n)++] = file;
    return 0;
}

/* Ids are checked before paths, as the Code Interpreter API does it. */
int inputs_read(const struct inputs_source *from, struct input_file **ret, unsigned *ret_n,
                struct problem *p) {
    struct inputs to = {ret, ret_n};
    size_t i;
    const json_t *f;
    json_array_foreach(json_object_get(from->request, "files"), i, f) {
        if (add_file(from, &to, f, p) < 0)
            return -1;
    }
    for (unsigned k = 0; k < *ret_n; k++) {
        const char *path = (*ret)[k].path, *wrong = paths_clean((*ret)[k].path, from->live);
        char text[300];
        if (!wrong)
            continue;
        paths_wrong(wrong, path, text, sizeof text);
        return problem_set(p, "bad_path", "%s", text);
    }
    return 0;
}

static void prepare_file(struct body *b, const json_t *file) {
    const json_t *content = json_object_get(file, "content");
    struct body_text *t = json_object_get(file, "file_id") ? NULL : body_add_text(b, content);
    AUTO_BUF bytes = BUF_INIT;
    if (!t)
        return;
    if (!is_base64(file))
        body_text_seal(t, json_string_value(content), json_string_length(content));
    else if (base64_decode(&bytes, json_string_value(content), json_string_length(content)))
        body_text_seal(t, bytes.data, bytes.len);
    else
        t->is_bad = true;
}

void inputs_prepare(struct body *b, const json_t *request) {
    const json_t *file;
    size_t i;
    json_array_foreach(json_object_get(request, "files"), i, file) prepare_file(b, file);
}

int cwd_check(const json_t *body, struct problem *p) {
    return strlen(field_str(body, "cwd", "")) <= CWD_MAX
               ? 0
               : problem_set(p, "bad_value", "cwd has more than 4095 bytes");
}

/* As JSON, escapes included: that is what is kept, in a journal that has a bound. */
int env_check_kept(const json_t *body, struct problem *p) {
    const json_t *env = json_object_get(body, "env");
    if (json_is_object(env) && json_dumpb(env, NULL, 0, JSON_COMPACT) > LIVE_ENV_MAX)
        return problem_set(p, "bad_value",
                           "env has more than %u bytes as JSON; write them to a file",
                           LIVE_ENV_MAX);
    return env_check(body, p);
}

int env_check(const json_t *body, struct problem *p) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(body, "env"), key, value) {
        if (!*key || strchr(key, '='))
            return problem_set(p, "bad_value", "a name in env is empty or holds a '='");
    }
    return 0;
}

char *field_dump(const json_t *body, const char *name) {
    const json_t *v = json_object_get(body, name);
    return json_is_object(v) || json_is_array(v) ? json_dumps(v, JSON_COMPACT) : NULL;
}
