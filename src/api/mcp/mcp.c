/* See mcp.h. */

#include "api/mcp/mcp.h"

#include "api/core/call.h"
#include "api/mcp/about.h"
#include "api/mcp/host_files.h"
#include "api/mcp/oauth.h"
#include "api/mcp/place.h"
#include "api/mcp/terms.h"
#include "api/mcp/tools.h"
#include "mcp/rpc.h"
#include "mcp/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who asks ---- */

static void who_free(struct mcp_asker *who) {
    json_decref(((struct mcp_who *)who)->with);
    free(who);
}

/* Or NULL, and the client has its reply. */
static struct mcp_asker *who_new(struct call *c) {
    struct mcp_who *w = xcalloc(1, sizeof *w);
    struct problem p = {0};
    w->asker.free = who_free;
    w->caller = c->who;
    snprintf(w->asker.owner, sizeof w->asker.owner, "%s/%s", c->who.tenant, c->who.key);
    if (terms_read(c, w, &p) == 0)
        return &w->asker;
    who_free(&w->asker);
    call_problem(c, &p);
    return NULL;
}

/* ---- the endpoint ---- */

static void mcp_leave(void *state) {
    mcp_request_over(state);
}

static void do_mcp(struct call *c) {
    struct mcp_asker *who = who_new(c);
    if (!who)
        return;
    c->state = c->req;
    c->state_done = mcp_leave;
    mcp_serve(c->api->mcp, c->req, who);
}

int mcp_start(struct api *a, struct err *e) {
    struct link_secret secret;
    struct mcp_host host = {.loop = a->o.loop,
                            .crew = a->o.engine->crew,
                            .name = "cloche",
                            .title = "cloche: Python in sandboxes",
                            .version = CLOCHE_VERSION,
                            .offers = &mcp_registry_of_cloche,
                            .instruct = about_instructions,
                            .on_session_over = place_session_over};
    if (link_secret_open(a->o.state_dir, LINK_SECRET_MCP, &secret, e) < 0)
        return -1;
    memcpy(host.secret, secret.bytes, sizeof host.secret);
    a->mcp = mcp_new(&host);
    return 0;
}

/* ---- routes ---- */

/* What a message holds is MCP's affair. */
static const struct field message_fields[] = {
    HAS("jsonrpc", FIELD_STRING, WORDS("2.0")), MAY_HAVE("id", FIELD_STRING, .flags = FIELD_OR_INT),
    MAY_HAVE("method", FIELD_STRING),           MAY_HAVE("params", FIELD_OBJECT),
    MAY_HAVE("result", FIELD_OBJECT),           MAY_HAVE("error", FIELD_OBJECT),
};
static const struct schema message_schema = {SCHEMA("McpMessage", message_fields)};

static const struct schema batch_schema = {SCHEMA_OF_LIST("McpBatch", message_schema)};
static const struct schema answer_schema = {.name = "McpAnswer",
                                            ONE_OF(&message_schema, &batch_schema)};

/* Before a message is read, errors are those of the API, in JSON-RPC's words as well. */
static const struct field refusal_fields[] = {
    MAY_HAVE("jsonrpc", FIELD_STRING),
    MAY_HAVE("error", FIELD_OBJECT),
    MAY_HAVE("id", FIELD_STRING, .flags = FIELD_OR_INT),
};
static const struct schema refusal_schema = {SCHEMA("McpRefusal", refusal_fields)};

static int mcp_tell(const struct call *c, const struct problem *p, struct buf *to) {
    AUTO_BUF data = BUF_INIT;
    AUTO_BUF text = BUF_INIT;
    (void)c;
    problem_json(p, &data);
    buf_addf(&text, "%s: %s", problem_message(p), p->remediation);
    rpc_error(to, NULL, RPC_INVALID, text.data, data.data);
    return p->status;
}

#define REFUSED                                                                                    \
    {400, "what is no message, or not for this server", JSON_TYPE, &message_schema},               \
        {404, "no such method, session or event", JSON_TYPE, &message_schema},
static const struct api_reply post_replies[] = {
    {202, "a notification or response was taken", NULL, NULL},
    REFUSED{406, "Accept names neither form", JSON_TYPE, &message_schema},
    {413, "more than 4 MiB", JSON_TYPE, &message_schema},
    {415, "not JSON", JSON_TYPE, &message_schema},
    {503, "too much is being read", JSON_TYPE, &message_schema},
    {0},
};
static const struct api_reply get_replies[] = {
    REFUSED{405, "nothing to listen to", JSON_TYPE, &message_schema},
    {0},
};
static const struct api_reply delete_replies[] = {
    REFUSED{405, "no sessions in this version", JSON_TYPE, &message_schema},
    {0},
};

#define OF_MCP .tell = mcp_tell, .refusal = &refusal_schema
/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/mcp", "A message of the Model Context Protocol", "mcp", NULL, JSON_TYPE, 200,
      "the answer, or a stream of messages", JSON_TYPE, &terms_query, .gives = &answer_schema,
      .events = &message_schema, .more = post_replies, .errors = "bad_value unknown_profile"},
     do_mcp, OF_MCP},
    {{"GET", "/mcp", "The rest of a stream of MCP messages", "mcp", NULL, NULL, 200, "messages",
      STREAM_TYPE, &terms_query, .more = get_replies, .errors = "bad_value unknown_profile"},
     do_mcp, OF_MCP},
    {{"DELETE", "/mcp", "The end of an MCP session", "mcp", NULL, NULL, 204, "nothing", NULL,
      &terms_query, .more = delete_replies, .errors = "bad_value unknown_profile"},
     do_mcp, OF_MCP},
};
/* clang-format on */
static const struct route_table table = ROUTE_TABLE(routes);

const struct route_table *const mcp_tables[] = {&table, &host_file_routes, &oauth_routes, NULL};
