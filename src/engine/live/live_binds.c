/* See live_binds.h. SECURITY: here is decided by the words of the path alone whether it is one of
 * the allowed directories or below one; init resolves the rest, without links (src/init/binds.c).
 * Which directory was meant goes to init as the operator wrote it: a nursery from before a SIGHUP
 * may know another list. */

#include "engine/live/live_binds.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/core/engine.h"
#include "engine/process/live_request.h"
#include "wire/mounts.h"

#include <stdio.h>
#include <string.h>

/* The operator's words are the same for all profiles. */
static const struct config_list *allowed_here(const struct config *g) {
    static const struct config_list none = {.n = 0};
    for (unsigned i = 0; i < g->nprofiles; i++) {
        if (g->profiles[i].live && !g->profiles[i].removed)
            return &g->profiles[i].allowed;
    }
    return &none;
}

/* Of several that it is in, any will do that lets it be used so. */
static bool allow(const struct config_list *all, const struct live_bind *b, struct host_bind *ret) {
    for (unsigned i = 0; i < all->n; i++) {
        struct allow_words w;
        struct err ignored;
        if (allow_words_parse(all->items[i], &w, &ignored) < 0 || (b->writable && !w.writable))
            continue;
        const char *below = allow_words_below(&w, b->host);
        if (!below)
            continue;
        ret->allowed = xstrdup(w.host);
        ret->below = xstrdup(below);
        return true;
    }
    return false;
}

/* "/workspace/data", "/app/data" and "data" are the same place. */
static const char *place_of(const char *path) {
    static const char *const tops[] = {"/workspace/", "/app/"};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        if (strncmp(path, tops[i], strlen(tops[i])) == 0)
            return path + strlen(tops[i]);
    }
    return path;
}

static bool is_taken(const struct live_request *q, const char *path) {
    struct mount_words own, other;
    snprintf(own.path, sizeof own.path, "%s", path);
    for (unsigned i = 0; i < q->nbinds; i++) {
        snprintf(other.path, sizeof other.path, "%s", q->binds[i].path);
        if (mount_words_clash(&own, &other))
            return true;
    }
    return false;
}

int live_bind_add(const struct engine *g, struct live_request *q, const struct live_bind *b,
                  struct err *e) {
    const char *path = place_of(b->path);
    struct host_bind made = {.writable = b->writable};
    char quoted[200];
    if (!mount_path_is_good(path))
        return err_user(e, "bad_value",
                        "binds: %s is no path below /workspace of at most %d bytes, without \"..\"",
                        log_quote(b->path, quoted, sizeof quoted), MOUNT_PATH_MAX);
    if (is_taken(q, path))
        return err_user(e, "bad_value", "binds: two would have the place %s, or one in the other",
                        log_quote(path, quoted, sizeof quoted));
    if (!allow(allowed_here(&g->config), b, &made))
        return err_user(e, "bind_not_allowed", "binds: the operator does not allow %s%s",
                        log_quote(b->host, quoted, sizeof quoted),
                        b->writable ? " to be written to" : "");
    made.path = xstrdup(path);
    q->binds = xrealloc(q->binds, (q->nbinds + 1) * sizeof *q->binds);
    q->binds[q->nbinds++] = made;
    return 0;
}
