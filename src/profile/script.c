/* See script.h. SECURITY: the sandbox is hostile: what comes out of it is files that have names of
 * ours, bounded by its disk, and JSON. */

#include "profile/script.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/outdir.h"
#include "cli/client.h"
#include "cli/input.h"
#include "config/options.h"
#include "config/profile_read.h"
#include "config/resolve.h"
#include "loop/loop.h"
#include "supervisor/own_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESULT_MAX (4u << 20)
#define CODE_MAX   (1u << 20)
#define INPUTS     3

struct running {
    const struct script *s; /* borrowed */
    struct own_engine engine;
    struct buf code;
    struct input inputs[INPUTS];
    unsigned ninputs;
    struct outdir out;
    int sock, signals; /* owned */
    struct client_outcome outcome;
};

int script_config(struct options *o, struct config *ret, struct err *e) {
    if (options_resolve(o, ret, e) < 0)
        return -1;
    struct config others = {0};
    memcpy(others.profiles, ret->profiles, sizeof others.profiles);
    others.nprofiles = ret->nprofiles;
    config_done(&others);
    memset(ret->profiles, 0, sizeof ret->profiles);
    ret->nprofiles = 0;
    ret->memory_budget_mb = 0;
    if (options_origin(o, "log_level") == ORIGIN_DEFAULT)
        ret->log_level = LOG_WARN;
    return 0;
}

static void copy_list(struct config_list *to, const struct config_list *from) {
    for (unsigned k = 0; k < from->n; k++)
        profile_list_add(to, from->items[k]);
}

struct config_profile *script_add_profile(struct config *c, const char *name,
                                          const struct config_profile *like) {
    struct config_profile *p = &c->profiles[c->nprofiles++];
    *p = (struct config_profile){
        .name = xstrdup(name), .python = xstrdup(like->python), .pool = 0, .zygotes = 1};
    copy_list(&p->sites, &like->sites);
    copy_list(&p->binds, &like->binds);
    copy_list(&p->env, &like->env);
    return p;
}

static void replace(char **text, const char *with) {
    free(*text);
    *text = xstrdup(with);
}

/* One profile that has loaded nothing, and no maximum below what it gets. */
static int configure(struct options *o, const struct script *s, struct config *c, struct err *e) {
    if (script_config(o, c, e) < 0)
        return -1;
    script_add_profile(c, "build", s->like);
    if (s->wheels)
        replace(&c->wheels, s->wheels);
    replace(&c->network, s->network ? s->network : "none");
    c->maxima = limits_over(&c->maxima, &s->limits);
    return 0;
}

static int add_input(struct running *r, const char *name, int *fd) {
    r->inputs[r->ninputs++] =
        (struct input){.fd = fd_take(fd), .path = xstrdup(name), .mode = 0644};
    return 0;
}

static int add_file(struct running *r, const char *path, const char *name, struct err *e) {
    struct input *i = &r->inputs[r->ninputs];
    if (input_open(path, i, e) < 0)
        return -1;
    r->ninputs++;
    replace(&i->path, name);
    i->mode = 0644;
    return 0;
}

static int add_plan(struct running *r, struct err *e) {
    AUTO_FREE char *text = json_dumps(r->s->plan, JSON_COMPACT);
    AUTO_BUF name = BUF_INIT;
    AUTO_FD fd = -1;
    buf_addf(&name, "%s.json", r->s->name);
    if (!text || memfd_of("plan", text, strlen(text), &fd, e) < 0)
        return text ? -1 : err_set(e, ENOMEM, "%s", name.data);
    return add_input(r, name.data, &fd);
}

static int read_code(struct running *r, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    size_t len;
    buf_addf(&path, "%s/profile/%s.py", r->engine.config.pylib, r->s->name);
    AUTO_FD fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_user(e, "engine_failed", "%s: %s", path.data, strerror(errno));
    if (fd_read_all(fd, buf_reserve(&r->code, CODE_MAX), CODE_MAX, &len, e) < 0)
        return -1;
    buf_commit(&r->code, len);
    return 0;
}

static int prepare(struct running *r, struct options *o, struct err *e) {
    const int signals[] = {SIGINT, SIGTERM};
    if (configure(o, r->s, &r->engine.config, e) < 0 || read_code(r, e) < 0 || add_plan(r, e) < 0)
        return -1;
    for (size_t i = 0; i < sizeof r->s->files / sizeof *r->s->files; i++) {
        if (r->s->files[i] && add_file(r, r->s->files[i], r->s->file_names[i], e) < 0)
            return -1;
    }
    return loop_signals(signals, 2, &r->signals, e);
}

static int run(struct running *r, struct err *e) {
    struct run_msg m = {.flags = RUN_FILES | (r->s->quiet ? RUN_QUIET : 0),
                        .profile = "build",
                        .limits = r->s->limits,
                        .code = (const uint8_t *)r->code.data,
                        .code_len = r->code.len,
                        .code_fd = -1};
    const struct client_job job = {.sock = r->sock,
                                   .signals = r->signals,
                                   .inputs = r->inputs,
                                   .ninputs = r->ninputs,
                                   .network = r->s->network,
                                   .run = &m,
                                   .out = &r->out};
    int rc = client_run(&job, &r->outcome, e);
    fd_close(&r->sock);
    return rc;
}

static int read_result(const struct running *r, json_t **ret, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    size_t len;
    struct err why;
    buf_addf(&path, "%s/result.json", r->out.path);
    AUTO_FD fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *ret = NULL;
    if (fd < 0 || fd_read_all(fd, buf_reserve(&text, RESULT_MAX), RESULT_MAX, &len, &why) < 0 ||
        json_read(text.data, len, 16, ret, &why) < 0 || !json_is_object(*ret))
        return err_user(e, "build_failed", "what came out of the sandbox cannot be read");
    return 0;
}

/* In which way a program ended that said nothing itself. */
static int explain(const struct running *r, struct err *e) {
    const struct limits *l = &r->s->limits;
    uint32_t status = r->outcome.status;
    if (status == 128 + SIGINT || status == 128 + SIGTERM) /* which we passed on to it */
        return err_user(e, "interrupted", "interrupted; nothing was changed");
    if (status == 124)
        return err_user(e, "build_failed", "it was not done within %u s (--build-timeout)",
                        l->timeout_ms / 1000);
    if (status == 137)
        return err_user(e, "build_failed", "it needs more than %u MB of memory (--build-memory)",
                        l->memory_mb);
    if (status == 3)
        return err_user(e, "build_failed", "it needs more than %u MB of disk (--build-disk)",
                        l->disk_mb);
    return err_user(e, "build_failed", "it ended with status %u", status);
}

static int script_finish(struct running *r, json_t **ret, struct err *e) {
    const struct client_outcome *o = &r->outcome;
    switch (o->end) {
    case CLIENT_RESULT:
        if (o->status <= 1 && read_result(r, ret, e) == 0)
            return 0;
        return o->status ? explain(r, e) : -1;
    case CLIENT_REFUSED:
        return err_user(e, "build_failed", "%.300s", o->message.data);
    case CLIENT_LOST:
        own_engine_explain(&r->engine, o->why.data, e);
        return -1;
    case CLIENT_LEFT:
        return err_user(e, "interrupted", "interrupted; nothing was changed");
    }
    return -1;
}

int script_run(struct options *o, const struct script *s, json_t **ret, struct err *e) {
    struct running r = {.s = s,
                        .engine = OWN_ENGINE_INIT,
                        .code = BUF_INIT,
                        .out = {.path = s->out, .fd = -1},
                        .sock = -1,
                        .signals = -1,
                        .outcome = CLIENT_OUTCOME_INIT};
    *ret = NULL;
    int rc = prepare(&r, o, e);
    if (rc == 0)
        rc = own_engine_launch(&r.engine, &r.sock, e);
    if (rc == 0)
        rc = run(&r, e);
    if (rc == 0)
        rc = script_finish(&r, ret, e);
    own_engine_end(&r.engine);
    fd_close(&r.sock);
    fd_close(&r.signals);
    for (unsigned i = 0; i < r.ninputs; i++)
        input_done(&r.inputs[i]);
    outdir_done(&r.out);
    buf_done(&r.code);
    client_outcome_done(&r.outcome);
    return rc;
}
