/* GET /api/kernels/{id}/channels: all channels of a kernel over one WebSocket, in either framing
 * (jupyter_frame.h). A message that cannot be read is answered on iopub, and the connection stays.
 */

#include "api/jupyter.h"

#include "api/handlers.h"
#include "http/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX (10u << 20)

static void hear(struct jupyter_client *c, const void *data, size_t len, bool binary) {
    struct jupyter_in m;
    struct err e;
    if (!c->hub)
        return;
    if (jupyter_read(data, len, binary, c->v1, &m, &e) < 0) {
        jupyter_complain(c, &e);
        return;
    }
    jupyter_hear(c, &m);
    jupyter_in_done(&m);
}

static void on_text(void *arg, const char *text, size_t len) {
    hear(arg, text, len, false);
}

static void on_binary(void *arg, const void *data, size_t len) {
    hear(arg, data, len, true);
}

static void on_drain(void *arg) {
    const struct jupyter_client *c = arg;
    if (c->hub && c->hub->running && c->hub->running->client == c)
        jupyter_unhold(c->hub);
}

static void on_closed(void *arg) {
    jupyter_leave(arg);
}

static void free_client(void *state) {
    jupyter_leave(state);
    free(state);
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

static void set_session(struct jupyter_client *c) {
    const char *given = http_query(c->call->req, "session_id");
    char own[ID_MAX];
    id_make("", own, sizeof own);
    if (given && *given && strlen(given) < sizeof c->session)
        snprintf(c->session, sizeof c->session, "%s", given);
    else
        snprintf(c->session, sizeof c->session, "%s", own);
}

void do_jupyter_channels(struct call *c) {
    if (!call_is_websocket(c, "use /v1/sandboxes without one"))
        return;
    struct jupyter_hub *h = jupyter_named(c, c->params[0]);
    if (!h)
        return;
    struct jupyter_client *to = xcalloc(1, sizeof *to);
    const struct ws_options o = {.arg = to,
                                 .message_max = MESSAGE_MAX,
                                 .on_text = on_text,
                                 .on_binary = on_binary,
                                 .on_drain = on_drain,
                                 .on_closed = on_closed};
    to->call = c;
    to->v1 = offers_v1(http_header(c->req, "Sec-WebSocket-Protocol"));
    set_session(to);
    if (to->v1)
        http_add_header(c->req, "Sec-WebSocket-Protocol", JUPYTER_V1);
    to->ws = ws_accept(c->req, &o);
    if (!to->ws) {
        free(to);
        return;
    }
    c->state = to;
    c->state_done = free_client;
    jupyter_join(h, to);
}
