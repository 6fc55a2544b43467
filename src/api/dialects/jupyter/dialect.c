/* Jupyter's API as a dialect: its routes, its errors, and where its clients put their token. */

#include "api/dialects/jupyter/jupyter.h"

/* An object that begins with what Jupyter's clients read, and goes on with `rest`, an object. */
static void with_reason(struct buf *to, const char *message, int status, const struct buf *rest) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key_str(&j, "message", message);
    jw_key_str(&j, "reason", http_reason(status));
    jw_members(&j, rest->data, rest->len);
    jw_object_end(&j);
}

static const struct field error_fields[] = {
    MAY_HAVE("message", FIELD_STRING),
    MAY_HAVE("reason", FIELD_STRING),
};
static const struct schema jupyter_error_schema = {SCHEMA("JupyterError", error_fields),
                                                   .with = &error_schema};

static int jupyter_tell(const struct call *c, const struct problem *p, struct buf *to) {
    AUTO_BUF ours = BUF_INIT;
    (void)c;
    problem_json(p, &ours);
    with_reason(to, problem_message(p), p->status, &ours);
    return p->status;
}

static void jupyter_tell_body(int status, struct buf *reply) {
    AUTO_BUF all = BUF_INIT;
    with_reason(&all, "the body is not what this endpoint takes", status, reply);
    buf_clear(reply);
    buf_add(reply, all.data, all.len);
}

static void *jupyter_start(struct api *a) {
    struct jupyter *j = xcalloc(1, sizeof *j);
    loop_share_init(&j->posting, a->o.loop, JUPYTER_POSTING_NS);
    return j;
}

static const struct route unknown = {{.method = "-", .path = "/api/{path...}"}};

const struct dialect jupyter_dialect = {
    .name = JUPYTER_DIALECT,
    .tables = (const struct route_table *const[]){&jupyter_about_routes, &jupyter_routes,
                                                  &jupyter_channels_routes,
                                                  &jupyter_sessions_routes, NULL},
    .unknown = &unknown,
    .help = "Jupyter's kernels and sessions",
    .tell = jupyter_tell,
    .refusal = &jupyter_error_schema,
    .tell_body = jupyter_tell_body,
    .at_doors = true,
    .secret = "token",
    .start = jupyter_start,
    .adopt = jupyter_adopt,
    .inherit = jupyter_inherit,
};
