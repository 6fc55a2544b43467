/* Files of the sandbox that a client of MCP means, for `cloche mcp`: its tools upload_file and
 * download_file name files of the client's machine, so it has the bytes, and a message of MCP is
 * no place for them. The query, and the header Cloche-Sandbox, are those of /mcp. */

#include "api/mcp/host_files.h"

#include "api/core/call.h"
#include "api/files/download.h"
#include "api/files/file_call.h"
#include "api/files/sandbox_files.h"
#include "api/jobs/aliases.h"
#include "api/mcp/place.h"
#include "api/mcp/terms.h"
#include "engine/live/live.h"
#include "http/http.h"

/* What the query says, if the sandbox is still to be made. */
static int fill_asked(struct call *c, struct live_request *q, struct problem *p) {
    struct mcp_who w = {.caller = c->who};
    int r = terms_read(c, &w, p);
    if (r == 0)
        r = terms_fill(&w, q, p);
    json_decref(w.with);
    return r;
}

static void use(struct call *c, alias_fn *then) {
    struct mcp_who w = {.caller = c->who};
    struct problem p;
    char kept[ALIAS_MAX];
    int r = terms_read(c, &w, &p);
    json_decref(w.with);
    if (r < 0) {
        call_problem(c, &p);
        return;
    }
    place_kept_name(&w, *w.sandbox ? w.sandbox : PLACE_DEFAULT, kept, sizeof kept);
    alias_use(c, PLACE_KEPT_AS, kept, fill_asked, then);
}

static void file_put(struct call *c, const struct files_made *m) {
    (void)m;
    http_reply(c->req, 204, NULL, "", 0);
}

static void put_file(struct call *c, struct live *l) {
    files_put(c, live_id(l), c->params[0], NULL, file_put);
}

static void do_put(struct call *c) {
    http_hold(c->req);
    use(c, put_file);
}

static void get_file(struct call *c, struct live *l) {
    files_get(c, live_id(l), c->params[0], "application/octet-stream");
}

static void do_get(struct call *c) {
    use(c, get_file);
}

#define ERRORS                                                                                     \
    ERRORS_OF_START ERRORS_OF_PATH "too_many_sandboxes sandbox_paused bind_not_allowed bad_bind "  \
                                   "bad_value unknown_profile network_not_allowed cannot_limit "

/* clang-format off */
static const struct route routes[] = {
    {{"PUT", "/mcp/files/{path...}", "Upload a file to the sandbox that an MCP client means", "mcp",
      NULL, "application/octet-stream", 204, "nothing", NULL, &terms_query, .errors = ERRORS},
     do_put},
    {{"GET", "/mcp/files/{path...}", "Download a file of the sandbox that an MCP client means", "mcp",
      NULL, NULL, 200, "its bytes", "application/octet-stream", &terms_query,
      .errors = ERRORS ERRORS_OF_DOWNLOAD "not_a_file"},
     do_get},
};
/* clang-format on */
const struct route_table host_file_routes = ROUTE_TABLE(routes);
