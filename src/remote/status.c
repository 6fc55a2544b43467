/* `cloche status --server URL`: what GET /v1/info says of the engine. */

#include "remote/status.h"

#include "base/fd.h"
#include "base/json.h"
#include "cli/client.h"
#include "cli/report.h"
#include "cli/state.h"
#include "remote/net/call.h"
#include "remote/table.h"

#include <jansson.h>
#include <stdlib.h>

static int show(const struct status_options *s, const struct remote_reply *reply, struct err *e) {
    json_auto_t *root = NULL;
    if (json_read(reply->body.data, reply->body.len, JSON_DEPTH_MAX, &root, e) < 0)
        return err_user(e, "bad_reply", "the answer of %s is no JSON", s->server);
    const json_t *state = json_object_get(root, "engine");
    if (!json_is_object(state))
        return err_user(e, "bad_reply", "the answer of %s says nothing of an engine", s->server);
    if (s->json)
        table_json(state);
    else
        state_print(state, s->server);
    return 0;
}

static int ask_info(const struct status_options *s, struct client_outcome *ret, struct err *e) {
    AUTO_REMOTE r = NULL;
    AUTO_REPLY reply = REMOTE_REPLY_INIT;
    const struct remote_call c = {
        .method = "GET", .path = "/v1/info", .upload = -1, .gives_signs = true};
    ret->end = CLIENT_RESULT;
    if (remote_open(s->server, s->key_file, -1, &r, e) < 0 || remote_do(r, &c, &reply, e) < 0)
        return -1;
    if (reply.status == 200)
        return show(s, &reply, e);
    remote_refused(&reply, ret);
    return 0;
}

int remote_status(int argc, char **argv) {
    struct status_options s;
    struct client_outcome o = CLIENT_OUTCOME_INIT;
    struct err e;
    int status = 0;
    if (status_options_parse(argc, argv, &s, &e) < 0 || ask_info(&s, &o, &e) < 0)
        status = report(&e, s.json);
    else if (o.end == CLIENT_REFUSED)
        status = report_failure(
            &(struct failure){o.kind.data, o.message.data, o.remediation.data, o.retryable},
            s.json);
    client_outcome_done(&o);
    return status;
}
