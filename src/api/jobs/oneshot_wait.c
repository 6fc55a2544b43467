/* See oneshot_wait.h. */

#include "api/jobs/oneshot_wait.h"

#include "api/jobs/job_wait.h"
#include "base/log.h"

struct oneshot_wait {
    struct job_wait wait;
    struct oneshot_way way;
};

static int put_result(const struct oneshot_way *way, const struct oneshot *x, struct rope *to) {
    if (way->put)
        return way->put(way, x, to);
    oneshot_result(x, to);
    return 200;
}

static void oneshot_wait_on_done(void *arg, struct oneshot *x, const struct err *why) {
    struct oneshot_wait *w = arg;
    struct outlet *out = &w->wait.out;
    AUTO_ROPE json = ROPE_INIT;
    if (why) {
        struct problem p = problem_of(why);
        if (p.status == 500)
            log_error("request failed id=%s error=%s", out->who.request, log_text(why->text));
        outlet_problem(out, &p);
    } else {
        int status = put_result(&w->way, x, &json);
        outlet_rope(out, status, &json, oneshot_id(x));
    }
    job_wait_over(&w->wait);
}

static void oneshot_wait_leave(void *job) {
    oneshot_leave(job);
}

void oneshot_wait(struct call *c, const json_t *body, const struct oneshot_way *way) {
    struct problem p = {0};
    struct oneshot *x;
    struct oneshot_wait *w = job_wait_new(c, sizeof *w, oneshot_wait_leave);
    if (!w)
        return;
    const struct oneshot_options o = {.body = body,
                                      .large = c->large,
                                      .arg = w,
                                      .flags = way->flags,
                                      .own_bounds = way->own_bounds,
                                      .no_files = way->no_files,
                                      .all_network = way->all_network,
                                      .shows = way->shows,
                                      .on_done = oneshot_wait_on_done};
    w->way = *way;
    if (oneshot_start(&c->who, &o, &x, &p) < 0) {
        outlet_problem(&w->wait.out, &p);
        return;
    }
    w->wait.job = x;
    http_add_header(c->req, "X-Execution-Id", oneshot_id(x));
}
