/* See request.h: the profile, the names of the files and the program's size are checked here, what
 * is the same for every guest in core/admit.c. */

#include "engine/oneshot/request.h"

#include "base/buf.h"
#include "base/fd.h"
#include "engine/core/admit.h"
#include "engine/core/engine.h"
#include "engine/network/terms.h"
#include "engine/oneshot/imports.h"
#include "wire/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void run_request_done(struct run_request *q) {
    free(q->tenant);
    free(q->profile);
    for (unsigned i = 0; i < q->nargs; i++)
        free(q->args[i]);
    for (unsigned i = 0; i < q->nenv; i++)
        free(q->env[i]);
    inputs_free(q->inputs, q->ninputs);
    free(q->args);
    free(q->env);
    free(q->code);
    network_terms_free(q->network);
    tree_leave(q->tree);
    fd_close(&q->code_fd);
    *q = (struct run_request){.code_fd = -1};
}

/* How much of what was sent is the program. */
static size_t program_len(const struct run_request *q, const uint8_t *code, size_t len) {
    return q->flags & RUN_HANDLER ? strnlen((const char *)code, len) : len;
}

static struct profile_pool *choose_auto(struct engine *g, const struct run_request *q) {
    const char *modules[CONFIG_MAX_PROFILES];
    unsigned index[CONFIG_MAX_PROFILES], n = 0;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        if (g->pools[i].state != PROFILE_BROKEN && !g->config.profiles[i].live) {
            modules[n] = g->pools[i].modules;
            index[n++] = i;
        }
    }
    if (n == 0)
        return &g->pools[0];
    if (q->code_fd < 0)
        return &g->pools[index[imports_choose(q->code, program_len(q, q->code, q->code_len),
                                              modules, n)]];
    AUTO_FREE uint8_t *head = xmalloc(IMPORTS_MAX_BYTES);
    ssize_t got = pread(q->code_fd, head, IMPORTS_MAX_BYTES, 0);
    size_t len = program_len(q, head, got < 0 ? 0 : (size_t)got);
    return &g->pools[index[imports_choose(head, len, modules, n)]];
}

static bool is_auto(const struct run_request *q) {
    return strcmp(q->profile, "auto") == 0 || *q->profile == '\0';
}

/* The operator's of that name. */
static int choose_pool(struct engine *g, const struct run_request *q, const char *name,
                       struct profile_pool **ret, struct err *e) {
    AUTO_BUF names = BUF_INIT;
    *ret = is_auto(q) ? choose_auto(g, q) : NULL;
    for (unsigned i = 0; i < g->config.nprofiles && !*ret; i++) {
        if (g->config.profiles[i].removed || g->config.profiles[i].live)
            continue;
        if (strcmp(name, g->config.profiles[i].name) == 0)
            *ret = &g->pools[i];
        buf_addf(&names, "%s, ", g->config.profiles[i].name);
    }
    if (!*ret)
        return err_user(e, "unknown_profile", "there is no profile \"%.40s\"; there are %sand auto",
                        name, names.data);
    if ((*ret)->state == PROFILE_BROKEN)
        return err_user(e, "profile_broken", "profile %s cannot be used: %.300s",
                        (*ret)->config->name, (*ret)->what);
    return 0;
}

static size_t bytes_of(char *const *items, unsigned n) {
    size_t all = 0;
    for (unsigned i = 0; i < n; i++)
        all += strlen(items[i]);
    return all;
}

/* Before those of the request, which come after it in the list and win. */
static int run_add_env(struct run_request *q, const struct tree *t, struct err *e) {
    const struct config_list *env = &t->env;
    unsigned n = RUN_MAX_ENV - q->nenv < env->n ? RUN_MAX_ENV - q->nenv : env->n;
    size_t asked = bytes_of(q->args, q->nargs) + bytes_of(q->env, q->nenv);
    if (n == 0)
        return 0;
    if (asked + bytes_of(env->items, n) > RUN_MAX_STRINGS)
        return err_user(e, "bad_value",
                        "args and env have more than %u bytes together with the env of profile %s",
                        RUN_MAX_STRINGS, t->name);
    q->env = xrealloc(q->env, (q->nenv + n) * sizeof *q->env);
    memmove(&q->env[n], q->env, q->nenv * sizeof *q->env);
    for (unsigned k = 0; k < n; k++)
        q->env[k] = xstrdup(env->items[k]);
    q->nenv += n;
    return 0;
}

/* A tenant's own profile comes before the operator's of the same name, which may be younger. */
static int choose_profile(struct engine *g, struct run_request *q, struct profile_pool **ret,
                          struct err *e) {
    struct tree *t = is_auto(q) ? NULL : trees_find(g, run_tenant(q), q->profile);
    if (choose_pool(g, q, t ? t->profile : q->profile, ret, e) < 0)
        return t ? err_wrap(e, "profile %s", t->name) : -1;
    if (t && tree_check(t, *ret, e) < 0)
        return -1;
    q->tree = tree_use(t);
    if (!t)
        return 0;
    q->flags |= RUN_TREE;
    return run_add_env(q, t, e);
}

/* The program itself has that place, however it is spelt. */
static int check_inputs(const struct run_request *q, struct err *e) {
    for (unsigned i = 0; i < q->ninputs; i++) {
        const char *path = q->inputs[i].path;
        while (strncmp(path, "./", 2) == 0 || path[0] == '/')
            path += path[0] == '/' ? 1 : 2;
        if (strcmp(path, "__main__.py") == 0)
            return err_user(e, "bad_path", "file for %.150s: that name is the program's own",
                            q->inputs[i].path);
    }
    return 0;
}

/* It is written to the sandbox's disk like any file. One that is not inline is memory of ours until
 * then, and for as long as the sandbox keeps what we hand it. */
static int check_program(const struct run_request *q, uint64_t *ret_bytes, struct err *e) {
    struct stat st = {.st_size = (off_t)q->code_len};
    if (q->code_fd >= 0 && fstat(q->code_fd, &st) < 0)
        return err_sys(e, "the program");
    *ret_bytes = q->code_fd >= 0 ? (uint64_t)st.st_size : 0;
    if ((uint64_t)st.st_size <= (uint64_t)q->limits.disk_mb << 20)
        return 0;
    return err_user(e, "disk_full", "the program has %lld bytes, its disk only %u MB",
                    (long long)st.st_size, q->limits.disk_mb);
}

const char *run_tenant(const struct run_request *q) {
    return q->tenant ? q->tenant : "";
}

static int run_check(struct admission *a, struct err *e) {
    const struct run_request *q = a->arg;
    return check_inputs(q, e) < 0 ? -1 : check_program(q, &a->files_bytes, e);
}

int run_admit(struct engine *g, struct run_request *q, struct profile_pool **ret, struct err *e) {
    if (choose_profile(g, q, ret, e) < 0)
        return -1;
    struct limits usual = config_born(&g->config, (*ret)->config);
    if (q->tree) /* held against the maxima, as what is asked for */
        q->limits = limits_over(&q->tree->limits, &q->limits);
    struct admission a = {.pool = *ret,
                          .tenant = run_tenant(q),
                          .defaults = &usual,
                          .maxima = g->config.maxima,
                          .limits = &q->limits,
                          .inputs = q->inputs,
                          .ninputs = q->ninputs,
                          .check = run_check,
                          .arg = q};
    if (q->unbound)
        a.maxima = (struct limits){0};
    if (q->own_bounds)
        a.maxima.timeout_ms = a.maxima.memory_mb = a.maxima.cpu_seconds = 0;
    if (admit(&a, e) < 0)
        return -1;
    q->files_bytes = a.files_bytes;
    return 0;
}
