/* Kernels as others see them: found, named, watched, told in JSON. */

#include "engine/kernel/kernel_view.h"

#include "base/list.h"
#include "engine/core/about.h"
#include "engine/kernel/cell.h"
#include "engine/kernel/kernel.h"
#include "engine/process/group.h"
#include "engine/process/live_state.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {"starting", "idle", "busy", "starting"};

struct kernel *kernel_find(struct live *l, const char *id, struct err *e) {
    for (struct kernel *k = l->kernels; k; k = k->next) {
        if (!k->deleted && (id ? strcmp(k->id, id) == 0 : k->is_default))
            return k;
    }
    err_user(e, "no_such_kernel", "there is no kernel %.60s in this sandbox", id ? id : "");
    return NULL;
}

struct kernel *kernel_next(struct live *l, const struct kernel *k) {
    struct kernel *next = k ? k->next : l->kernels;
    while (next && next->deleted)
        next = next->next;
    return next;
}

const char *kernel_id(const struct kernel *k) {
    return k->id;
}

struct live *kernel_live(struct kernel *k) {
    return k->live;
}

bool kernel_is_default(const struct kernel *k) {
    return k->is_default;
}

const char *kernel_state(const struct kernel *k) {
    return state_names[k->state == KERNEL_BUSY && !k->running ? KERNEL_IDLE : k->state];
}

uint64_t kernel_count(const struct kernel *k) {
    return k->execution_count;
}

const char *kernel_label(const struct kernel *k) {
    return k->label;
}

void kernel_set_label(struct kernel *k, const char *label) {
    free(k->label);
    k->label = label ? xstrdup(label) : NULL;
    buf_clear(&k->lasting);
    live_changed(k->live);
}

void kernel_watch(struct kernel *k, struct kernel_watcher *w) {
    w->kernel = k;
    LIST_PUSH(&k->watchers, w, next);
}

struct kernel_watcher *kernel_watched(const struct kernel *k,
                                      void (*on_news)(struct kernel_watcher *w,
                                                      enum kernel_news news)) {
    struct kernel_watcher *w = k->watchers;
    while (w && w->on_news != on_news)
        w = w->next;
    return w;
}

void kernel_unwatch(struct kernel_watcher *w) {
    if (!w->kernel)
        return;
    LIST_REMOVE(&w->kernel->watchers, w, next);
    w->kernel = NULL;
}

static const struct field view_fields[] = {
    HAS("id", FIELD_STRING),
    HAS("state", FIELD_STRING, WORDS("starting", "idle", "busy")),
    HAS("execution_count", FIELD_INT),
    HAS_OR_NULL("execution_id", FIELD_STRING, .help = "what it runs"),
    HAS("queued", FIELD_INT),
    HAS("restarts", FIELD_INT),
    HAS("cwd", FIELD_STRING),
    HAS("is_default", FIELD_BOOL),
    HAS_OR_NULL("limits", OBJECT(about_kernel_limits_schema), .help = "its own; null: it has none"),
    MAY_HAVE("usage", OBJECT(group_usage_schema), .help = "with limits of its own"),
};
const struct schema kernel_view_schema = {SCHEMA("Kernel", view_fields)};

void kernel_json(const struct kernel *k, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "id", k->id);
    jw_key_str(&j, "state", kernel_state(k));
    jw_key_uint(&j, "execution_count", k->execution_count);
    jw_key_str(&j, "execution_id", k->running ? k->running->id : NULL);
    jw_key_uint(&j, "queued", k->nqueued);
    jw_key_uint(&j, "restarts", k->restarts);
    jw_key_str(&j, "cwd", k->cwd ? k->cwd : "/workspace");
    jw_key_bool(&j, "is_default", k->is_default);
    group_json(&k->process, &j);
    jw_object_end(&j);
}
