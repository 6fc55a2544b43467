/* GET /api/kernels/{id}/channels: all channels of a kernel over one WebSocket, in either framing
 * (frame.h). A message that cannot be read is answered on iopub, and the connection stays.
 */

#include "api/dialects/jupyter/jupyter.h"

#include "http/ws.h"
#include "http/ws_handshake.h"
#include "loop/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX (10u << 20)

struct heard {
    struct jupyter_in m;
    bool is_bad;
    struct err why; /* then */
};

static struct heard *channels_read_as(const void *data, size_t len, bool binary, bool v1) {
    struct heard *h = xcalloc(1, sizeof *h);
    h->is_bad = jupyter_read(data, len, binary, v1, &h->m, &h->why) < 0;
    if (h->is_bad || jupyter_prepare(&h->m, &h->why) == 0)
        return h;
    jupyter_in_done(&h->m);
    h->is_bad = true;
    return h;
}

static void *read_v1(const void *data, size_t len, bool binary) {
    return channels_read_as(data, len, binary, true);
}

static void *read_old(const void *data, size_t len, bool binary) {
    return channels_read_as(data, len, binary, false);
}

static void channels_take_heard(void *arg, void *message) {
    struct jupyter_client *c = arg;
    struct heard *h = message;
    if (!c->hub || c->hub->gone)
        return;
    if (h->is_bad)
        jupyter_complain(c, &h->why);
    else
        jupyter_hear(c, &h->m);
    if (!c->hub || !jupyter_post_is_full(c->hub))
        return;
    c->waits = true;
    inbox_hold(&c->in, true);
}

static void channels_drop_heard(void *message) {
    struct heard *h = message;
    if (!h->is_bad)
        jupyter_in_done(&h->m);
    free(h);
}

static void channels_on_text(void *arg, const char *text, size_t len) {
    struct jupyter_client *c = arg;
    inbox_add(&c->in, text, len, false);
}

static void channels_on_binary(void *arg, const void *data, size_t len) {
    struct jupyter_client *c = arg;
    inbox_add(&c->in, data, len, true);
}

static void channels_on_drain(void *arg) {
    const struct jupyter_client *c = arg;
    if (c->hub && !c->hub->gone && c->hub->running && c->hub->running->client == c)
        jupyter_unhold(c->hub);
}

static void channels_on_cost(void *arg, uint64_t cpu_ns) {
    const struct jupyter_client *c = arg;
    if (c->hub)
        jupyter_heard(c->hub, cpu_ns);
}

static void channels_on_closed(void *arg) {
    jupyter_leave(arg);
}

static void free_client(void *state) {
    struct jupyter_client *c = state;
    jupyter_leave(c);
    inbox_done(&c->in);
    free(c);
}

/* The word in the list of those that the client offers. */
static bool offers_v1(const char *list) {
    for (const char *at = list; at && *at;) {
        at += strspn(at, " \t,");
        size_t n = strcspn(at, " \t,");
        if (n == sizeof JUPYTER_V1 - 1 && memcmp(at, JUPYTER_V1, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static const struct field query_fields[] = {
    {.name = "session_id", .help = "the client's own id"},
};
static const struct schema channels_query = {"", query_fields, 1, true};

static void channels_set_session(struct jupyter_client *c) {
    const char *given = call_query(c->call, "session_id");
    char own[ID_MAX];
    id_make("", own, sizeof own);
    if (given && *given && strlen(given) < sizeof c->session)
        snprintf(c->session, sizeof c->session, "%s", given);
    else
        snprintf(c->session, sizeof c->session, "%s", own);
}

static void do_jupyter_channels(struct call *c) {
    if (!call_is_websocket(c, "use /v1/sandboxes without one"))
        return;
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (!h)
        return;
    struct jupyter_client *to = xcalloc(1, sizeof *to);
    const struct ws_options o = {.arg = to,
                                 .owner = crew_owner(c->who.tenant),
                                 .message_max = MESSAGE_MAX,
                                 .on_text = channels_on_text,
                                 .on_binary = channels_on_binary,
                                 .on_drain = channels_on_drain,
                                 .on_cost = channels_on_cost,
                                 .on_closed = channels_on_closed};
    to->call = c;
    to->v1 = offers_v1(http_header(c->req, "Sec-WebSocket-Protocol"));
    channels_set_session(to);
    if (to->v1)
        http_add_header(c->req, "Sec-WebSocket-Protocol", JUPYTER_V1);
    to->ws = ws_accept(c->req, &o);
    if (!to->ws) {
        free(to);
        return;
    }
    to->in = (struct inbox){.crew = c->api->o.engine->crew,
                            .owner = crew_owner(c->who.tenant),
                            .ws = to->ws,
                            .arg = to,
                            .read = to->v1 ? read_v1 : read_old,
                            .take = channels_take_heard,
                            .drop = channels_drop_heard,
                            .on_cost = channels_on_cost};
    c->state = to;
    c->state_done = free_client;
    jupyter_join(h, to);
}

/* docs/jupyter.md names the messages: their content is Jupyter's. */
static const struct field header_fields[] = {
    MAY_HAVE("msg_id", FIELD_STRING),   MAY_HAVE("msg_type", FIELD_STRING),
    MAY_HAVE("username", FIELD_STRING), MAY_HAVE("session", FIELD_STRING),
    MAY_HAVE("date", FIELD_STRING),     MAY_HAVE("version", FIELD_STRING),
};
static const struct schema header_schema = {SCHEMA("JupyterHeader", header_fields), .open = true};
static const struct field message_fields[] = {
    HAS("header", OBJECT(header_schema)), MAY_HAVE("parent_header", OBJECT(header_schema)),
    MAY_HAVE("metadata", FIELD_OBJECT),   MAY_HAVE("content", FIELD_OBJECT),
    MAY_HAVE("channel", FIELD_STRING),    MAY_HAVE("buffers", FIELD_LIST),
    MAY_HAVE("msg_id", FIELD_STRING),     MAY_HAVE("msg_type", FIELD_STRING),
};
static const struct schema message_schema = {SCHEMA("JupyterMessage", message_fields), .open = true,
                                             .help = "without the subprotocol; with it, binary"};

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"GET", "/api/kernels/{kernel_id}/channels", "Jupyter: a kernel's channels over a WebSocket, "
      "with or without the subprotocol v1.kernel.websocket.jupyter.org", "jupyter", NULL, NULL, 101,
      "a WebSocket", NULL, &channels_query, .takes = &message_schema, .sends = &message_schema,
      .errors = "no_such_kernel"}, do_jupyter_channels},
};
/* clang-format on */
const struct route_table jupyter_channels_routes = ROUTE_TABLE(routes);
