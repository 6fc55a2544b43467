/* Jupyter's REST API: kernelspecs, kernels, sessions. A kernelspec is a profile; the kernels of one
 * share a live sandbox, and so their files, unless the kernelspec is an -isolated one. What Jupyter
 * knows of a kernel (its kernelspec, its session) is in the kernel's label, and its id is the
 * kernel's own: both outlive the server. */

#include "api/dialects/jupyter/jupyter.h"

#include "api/core/doors.h"
#include "api/jobs/inputs.h"
#include "api/jobs/live_requests.h"
#include "api/jobs/shared_sandbox.h"
#include "base/fd.h"
#include "engine/core/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SPEC "python3"
#define ALIAS        "python" /* what ipybox asks for */
#define ISOLATED     "-isolated"
#define PROFILE      "(profile)" /* members of a body that no client can set: see chosen() */
#define SPEC         "(spec)"

static const struct field kernel_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "\"python3\"",
     .help = "a kernelspec"},
    {.name = "env", .type = FIELD_MAP, .flags = FIELD_MAX | FIELD_NULLABLE, .max = RUN_MAX_ENV},
};
static const struct schema jupyter_kernel_schema = {
    .name = "JupyterKernel", .fields = kernel_fields, .n = 2, .open = true, .any_type = true};

/* ---- kernelspecs ---- */

struct spec {
    char name[80];
    const char *profile; /* borrowed from the configuration; or "auto" */
    bool isolated;
};

/* The i-th; false after the last. The default one, each profile by its name; each isolated. At a
 * sandbox's own port there is that sandbox only. */
static bool spec_at(const struct call *c, unsigned i, struct spec *ret) {
    struct engine *g = c->api->o.engine;
    const char *base = DEFAULT_SPEC;
    unsigned left = i / 2;
    *ret = (struct spec){.profile = "auto", .isolated = i % 2};
    if (i > 0 && call_at_door(c))
        return false;
    for (unsigned k = 0; left > 0; k++) {
        if (k == g->config.nprofiles)
            return false;
        const struct config_profile *p = &g->config.profiles[k];
        if (p->removed || p->live || !pool_live(g, p->name))
            continue;
        base = ret->profile = p->name;
        left--;
    }
    snprintf(ret->name, sizeof ret->name, "%s%s", base, ret->isolated ? ISOLATED : "");
    return true;
}

static bool find_spec(const struct call *c, const char *name, struct spec *ret) {
    if (!name || !*name || strcmp(name, ALIAS) == 0)
        name = DEFAULT_SPEC;
    for (unsigned i = 0; spec_at(c, i, ret); i++) {
        if (strcmp(ret->name, name) == 0)
            return true;
    }
    return false;
}

static void put_spec(struct jw *j, const struct spec *s) {
    char shown[160], logo[160];
    bool is_default = strcmp(s->profile, "auto") == 0;
    snprintf(shown, sizeof shown, "Python 3 (cloche%s%s%s)", is_default ? "" : ": ",
             is_default ? "" : s->profile, s->isolated ? ", isolated" : "");
    snprintf(logo, sizeof logo, "/kernelspecs/%s/logo-svg.svg", s->name);
    jw_object(j);
    jw_key_str(j, "name", s->name);
    jw_key(j, "spec");
    jw_object(j);
    jw_key(j, "argv");
    jw_array(j);
    jw_array_end(j);
    jw_key(j, "env");
    jw_raw(j, "{}", 2);
    jw_key_str(j, "display_name", shown);
    jw_key_str(j, "language", "python");
    jw_key_str(j, "interrupt_mode", "message");
    jw_key(j, "metadata");
    jw_raw(j, "{\"debugger\":false}", 18);
    jw_object_end(j);
    jw_key(j, "resources");
    jw_object(j);
    jw_key_str(j, "logo-svg", logo);
    jw_object_end(j);
    jw_object_end(j);
}

static void do_jupyter_specs(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    struct spec s;
    jw_object(&j);
    jw_key_str(&j, "default", DEFAULT_SPEC);
    jw_key(&j, "kernelspecs");
    jw_object(&j);
    for (unsigned i = 0; spec_at(c, i, &s); i++) {
        jw_key(&j, s.name);
        put_spec(&j, &s);
    }
    jw_object_end(&j);
    jw_object_end(&j);
    call_json(c, 200, &json);
}

static bool no_spec(struct call *c, const char *name) {
    struct problem p = {.status = 404,
                        .code = "no_such_kernelspec",
                        .remediation = "GET /api/kernelspecs lists those there"};
    snprintf(p.text, sizeof p.text, "there is no kernelspec \"%.60s\"", name);
    call_problem(c, &p);
    return false;
}

static void do_jupyter_spec(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    struct spec s;
    if (!find_spec(c, c->params[0], &s)) {
        no_spec(c, c->params[0]);
        return;
    }
    put_spec(&j, &s);
    call_json(c, 200, &json);
}

/* A bell jar. */
static void do_jupyter_logo(struct call *c) {
    static const char logo[] =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 64 64'>"
        "<path d='M14 50V28a18 18 0 0 1 36 0v22' fill='#dcebf7' stroke='#2b6ca3' stroke-width='4'/>"
        "<circle cx='32' cy='7' r='4' fill='#2b6ca3'/>"
        "<path d='M8 52h48v6H8z' fill='#2b6ca3'/>"
        "<path d='M26 46c0-8 12-8 12-16s-12-6-12 0' fill='none' stroke='#d9a400' stroke-width='4'/>"
        "</svg>";
    struct spec s;
    if (!find_spec(c, c->params[0], &s))
        no_spec(c, c->params[0]);
    else if (strcmp(c->params[1], "logo-svg.svg") != 0)
        call_problem(c, &(struct problem){.status = 404,
                                          .code = "no_such_file",
                                          .message = "a kernelspec has logo-svg.svg only",
                                          .remediation = "ask for that"});
    else
        http_reply(c->req, 200, "image/svg+xml", logo, sizeof logo - 1);
}

/* ---- models ---- */

static void put_kernel(struct jupyter_hub *h, struct jw *j) {
    const char *spec = jupyter_spec(h);
    unsigned connections = 0;
    char date[48];
    for (const struct jupyter_client *at = h->clients; at; at = at->next)
        connections++;
    jupyter_date(date, sizeof date, h->last_activity);
    jw_object(j);
    jw_key_str(j, "id", h->uuid);
    jw_key_str(j, "name", spec ? spec : DEFAULT_SPEC);
    jw_key_str(j, "last_activity", date);
    jw_key_str(j, "execution_state", kernel_state(jupyter_kernel(h)));
    jw_key_uint(j, "connections", connections);
    jw_object_end(j);
}

static const struct field model_fields[] = {
    HAS("id", FIELD_STRING),
    HAS("name", FIELD_STRING),
    HAS("last_activity", FIELD_STRING, .help = "ISO 8601"),
    HAS("execution_state", FIELD_STRING, WORDS("starting", "idle", "busy")),
    HAS("connections", FIELD_INT),
};
const struct schema jupyter_model_schema = {SCHEMA("JupyterKernelModel", model_fields)};

void jupyter_model(struct jupyter_hub *h, struct jw *j) {
    put_kernel(h, j);
}

static void reply_kernel(struct call *c, struct jupyter_hub *h, int status) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    put_kernel(h, &j);
    call_json(c, status, &json);
}

/* ---- made ---- */

static void jupyter_reply_made(struct call *c, struct kernel *k) {
    struct jupyter_hub *h = jupyter_hub(c->api, k);
    char location[80];
    jupyter_label_new(h, field_str(c->body, SPEC, DEFAULT_SPEC));
    if (jupyter_is_session(c)) {
        jupyter_session_made(c, h);
        return;
    }
    snprintf(location, sizeof location, "/api/kernels/%s", h->uuid);
    http_add_header(c->req, "Location", location);
    reply_kernel(c, h, 201);
}

/* Somebody waits for a kernel. */
struct asking {
    struct call *call; /* NULL: gone */
    bool made;         /* it is a new one: nobody knows it if the one who asked is gone */
};

static void asking_leave(void *state) {
    struct asking *w = state;
    w->call = NULL;
}

static void jupyter_on_kernel(void *arg, struct kernel *k, const struct err *why) {
    struct asking *w = arg;
    struct call *c = w->call;
    bool made = w->made;
    struct err e;
    free(w);
    if (!c) {
        if (made && !why)
            kernel_delete(k, &e);
        return;
    }
    c->state = NULL;
    c->state_done = NULL;
    if (why)
        call_fail(c, why);
    else if (made)
        jupyter_reply_made(c, k);
    else
        reply_kernel(c, jupyter_hub(c->api, k), 200);
}

static struct asking *ask(struct call *c, bool made) {
    struct asking *w = xcalloc(1, sizeof *w);
    w->call = c;
    w->made = made;
    c->state = w;
    c->state_done = asking_leave;
    return w;
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* One of many kernels gets what a live sandbox has by default. */
static void limit_own(const struct config *g, const struct live *l, struct limits *ret) {
    const struct limits *most = live_limits(l), *own = &g->live_kernel;
    uint32_t memory = own->memory_mb ? own->memory_mb : g->live.memory_mb;
    uint32_t cpus = own->cpus_percent ? own->cpus_percent : g->live.cpus_percent;
    *ret = (struct limits){.memory_mb = less(memory, most->memory_mb),
                           .cpus_percent = less(cpus, most->cpus_percent)};
}

static void in_shared(struct call *c, struct live *l) {
    struct limits own;
    struct err e;
    AUTO_FREE char *env = field_dump(c->body, "env");
    struct asking *w = ask(c, true);
    limit_own(c->api->config, l, &own);
    const struct kernel_request q = {.env = env,
                                     .limits = c->api->o.engine->no_groups ? NULL : &own};
    if (kernel_new(l, &q, jupyter_on_kernel, w, &e) == 0)
        return;
    c->state = NULL;
    c->state_done = NULL;
    free(w);
    call_fail(c, &e);
}

static int fill_isolated(struct call *c, struct live_request *q, struct problem *p) {
    *q = live_request_for(&c->who);
    (void)p;
    q->env = field_dump(c->body, "env");
    shared_fill_single(c, field_str(c->body, PROFILE, "auto"), q);
    return 0;
}

static void reply_isolated(struct outlet *o, struct live *l) {
    struct err e;
    struct kernel *k = kernel_find(l, NULL, &e);
    if (o->call && k)
        jupyter_reply_made(o->call, k);
    else /* whoever asked is gone, and nobody knows its id */
        live_end(l, "nobody waited for its kernel", NULL, NULL);
}

/* The kernelspec in the body, for those who make the kernel. */
static bool chosen(struct call *c, const char *name, struct spec *ret) {
    struct problem p = {0};
    if (!find_spec(c, name, ret))
        return no_spec(c, name);
    if (jupyter_set_env(c, &p) < 0) {
        call_problem(c, &p);
        return false;
    }
    json_object_set_new(c->body, PROFILE, json_string(ret->profile));
    json_object_set_new(c->body, SPEC, json_string(name && *name ? name : DEFAULT_SPEC));
    return true;
}

void jupyter_make(struct call *c, const char *name) {
    struct spec s;
    if (!chosen(c, name, &s))
        return;
    if (s.isolated)
        live_requests_make(c, fill_isolated, reply_isolated);
    else
        shared_use(c, strcmp(s.profile, "auto") == 0 ? NULL : s.profile, in_shared);
}

static void do_jupyter_kernel_new(struct call *c) {
    jupyter_make(c, field_str(c->body, "name", NULL));
}

/* ---- used ---- */

struct jupyter_hub *jupyter_named(struct call *c, const char *uuid) {
    struct jupyter_hub *h = jupyter_find(c, uuid);
    struct problem p = {.status = 404,
                        .code = "no_such_kernel",
                        .remediation = "GET /api/kernels lists those there"};
    if (h)
        return h;
    snprintf(p.text, sizeof p.text, "Kernel does not exist: %.60s", uuid);
    call_problem(c, &p);
    return NULL;
}

void jupyter_each(struct call *c, void (*fn)(void *arg, struct jupyter_hub *h), void *arg) {
    struct engine *g = c->api->o.engine;
    for (struct live *l = live_next(g, c->who.tenant, NULL); l;
         l = live_next(g, c->who.tenant, l)) {
        for (struct kernel *k = kernel_next(l, NULL); k; k = kernel_next(l, k)) {
            if (kernel_label(k) && call_means(c, l))
                fn(arg, jupyter_hub(c->api, k));
        }
    }
}

static void put_one_kernel(void *arg, struct jupyter_hub *h) {
    put_kernel(h, arg);
}

static void do_jupyter_kernels(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_array(&j);
    jupyter_each(c, put_one_kernel, &j);
    jw_array_end(&j);
    call_json(c, 200, &json);
}

static void do_jupyter_kernel(struct call *c) {
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (h)
        reply_kernel(c, h, 200);
}

static void do_jupyter_kernel_delete(struct call *c) {
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (!h)
        return;
    jupyter_end(h);
    http_reply(c->req, 204, NULL, "", 0);
}

static void do_jupyter_interrupt(struct call *c) {
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (!h)
        return;
    kernel_interrupt(jupyter_kernel(h));
    http_reply(c->req, 204, NULL, "", 0);
}

static void do_jupyter_restart(struct call *c) {
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (!h)
        return;
    jupyter_restart(h, jupyter_on_kernel, ask(c, false));
}

static const struct field inner_fields[] = {
    HAS("argv", FIELD_LIST),
    HAS("env", FIELD_MAP),
    HAS("display_name", FIELD_STRING),
    HAS("language", FIELD_STRING, WORDS("python")),
    HAS("interrupt_mode", FIELD_STRING, WORDS("message")),
    HAS("metadata", FIELD_OBJECT),
};
static const struct schema inner_schema = {SCHEMA("JupyterSpecInner", inner_fields)};
static const struct field spec_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("spec", OBJECT(inner_schema)),
    HAS("resources", FIELD_MAP, .help = "paths by name"),
};
static const struct schema one_spec = {SCHEMA("JupyterSpec", spec_fields)};
static const struct field specs_fields[] = {
    HAS("default", FIELD_STRING),
    HAS("kernelspecs", FIELD_MAP, .of = &one_spec, .help = "by name"),
};
static const struct schema all_specs = {SCHEMA("JupyterSpecs", specs_fields)};
static const struct schema kernels_schema = {
    SCHEMA_OF_LIST("JupyterKernels", jupyter_model_schema)};

#define ERRORS_OF_MAKING                                                                           \
    ERRORS_OF_START                                                                                \
    "no_such_kernelspec too_many_sandboxes kernel_failed sandbox_gone cannot_limit "               \
    "sandbox_paused 400:bad_value "
#define ERRORS_OF_ONE "no_such_kernel sandbox_paused kernel_failed kernel_gone sandbox_gone "

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/api/kernelspecs", "Jupyter: what kernels there can be", "jupyter", NULL, NULL, 200,
      "the kernelspecs: profiles", JSON_TYPE, .gives = &all_specs}, do_jupyter_specs},
    {{"GET", "/api/kernelspecs/{name}", "Jupyter: one of them", "jupyter", NULL, NULL, 200,
      "the kernelspec", JSON_TYPE, .gives = &one_spec, .errors = "no_such_kernelspec"}, do_jupyter_spec},
    {{"GET", "/kernelspecs/{name}/{file}", "Jupyter: its logo", "jupyter", NULL, NULL, 200,
      "a picture", "image/svg+xml", .errors = "no_such_kernelspec no_such_file"}, do_jupyter_logo},
    {{"GET", "/api/kernels", "Jupyter: list kernels", "jupyter", NULL, NULL, 200, "the kernels",
      JSON_TYPE, .gives = &kernels_schema}, do_jupyter_kernels},
    {{"POST", "/api/kernels", "Jupyter: start a kernel", "jupyter", &jupyter_kernel_schema, NULL, 201,
      "the kernel", JSON_TYPE, .gives = &jupyter_model_schema, .errors = ERRORS_OF_MAKING,
      .replays = true}, do_jupyter_kernel_new, .body_max = MB},
    {{"GET", "/api/kernels/{kernel_id}", "Jupyter: look at a kernel", "jupyter", NULL, NULL, 200,
      "the kernel", JSON_TYPE, .gives = &jupyter_model_schema, .errors = ERRORS_OF_ONE},
     do_jupyter_kernel},
    {{"DELETE", "/api/kernels/{kernel_id}", "Jupyter: end a kernel", "jupyter", NULL, NULL, 204,
      "nothing", NULL, .errors = ERRORS_OF_ONE}, do_jupyter_kernel_delete},
    {{"POST", "/api/kernels/{kernel_id}/interrupt", "Jupyter: KeyboardInterrupt", "jupyter", NULL,
      NULL, 204, "nothing", NULL, .errors = ERRORS_OF_ONE}, do_jupyter_interrupt},
    {{"POST", "/api/kernels/{kernel_id}/restart", "Jupyter: a fresh process", "jupyter", NULL, NULL,
      200, "the kernel", JSON_TYPE, .gives = &jupyter_model_schema, .errors = ERRORS_OF_ONE},
     do_jupyter_restart},
};
/* clang-format on */
const struct route_table jupyter_routes = ROUTE_TABLE(routes);
