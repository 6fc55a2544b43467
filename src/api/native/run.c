/* POST /v1/run: a program in a fresh sandbox, told in the words of a live cell. Whole, or as a
 * stream of the events in its record. */

#include "api/native/native.h"

#include "api/jobs/events.h"
#include "api/jobs/oneshot_wait.h"
#include "api/jobs/outlet.h"

static void run_stream(struct call *c, enum events_form form) {
    struct problem p = {0};
    struct oneshot *x;
    struct outlet out;
    if (!outlet_open(c, &out))
        return;
    const struct oneshot_options o = {
        .body = c->body, .large = c->large, .shows = true, .goes_on = out.replay != NULL};
    if (oneshot_start(&c->who, &o, &x, &p) < 0) {
        outlet_problem(&out, &p);
        outlet_done(&out);
        return;
    }
    outlet_refer(&out, oneshot_id(x));
    outlet_done(&out);
    http_add_header(c->req, "X-Execution-Id", oneshot_id(x));
    const struct events_source from = oneshot_source(x);
    events_stream(c, oneshot_record(x), form, 0, &from);
}

static void do_run(struct call *c) {
    enum events_form form = events_wanted(c);
    if (form == EVENTS_NONE)
        oneshot_wait(c, c->body, &(struct oneshot_way){.shows = true});
    else
        run_stream(c, form);
}

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/v1/run", "Run a program in a fresh sandbox, with the results and figures of a cell",
      "execute", &run_schema, NULL, 200,
      "the result, or a stream of events as the Accept header asks", JSON_TYPE}, do_run,
     .body_max = 64 * MB, .prepare = oneshot_prepare},
};
/* clang-format on */
const struct route_table run_routes = ROUTE_TABLE(routes);
