/* See trial.h. The warden tells on its ready pipe what became of each (launch.h). */

#include "supervisor/trial.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "supervisor/launch.h"
#include "supervisor/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define WITHIN_S 120 /* only an interpreter that hangs takes that long */

struct told {
    const struct config *config; /* borrowed */
    struct trial *trials;        /* borrowed */
    unsigned n;
    struct buf lines;
    char problem[300]; /* the engine's own */
};

static void take_half(struct trial_half *h, const char *rest) {
    if (strncmp(rest, "ready", 5) == 0) {
        h->state = TRIAL_READY;
    } else if (strncmp(rest, "off", 3) == 0) {
        h->state = TRIAL_OFF;
    } else if (strncmp(rest, "broken: ", 8) == 0) {
        h->state = TRIAL_BROKEN;
        snprintf(h->why, sizeof h->why, "%s", rest + 8);
    }
}

/* "profile NAME ready (3.11)", "live NAME broken: WHY", "problem WHY". */
static void take_line(struct told *t, const char *line) {
    const char *name = strchr(line, ' ');
    size_t kind = name ? (size_t)(name++ - line) : 0;
    if (kind == 7 && strncmp(line, "problem", 7) == 0)
        snprintf(t->problem, sizeof t->problem, "%s", name);
    bool live = kind == 4 && strncmp(line, "live", 4) == 0;
    if (!live && !(kind == 7 && strncmp(line, "profile", 7) == 0))
        return;
    for (unsigned i = 0; i < t->n; i++) {
        size_t len = strlen(t->config->profiles[i].name);
        if (strncmp(name, t->config->profiles[i].name, len) == 0 && name[len] == ' ')
            take_half(live ? &t->trials[i].live : &t->trials[i].programs, name + len + 1);
    }
}

static void take_lines(struct told *t) {
    char *end;
    while ((end = strchr(t->lines.data, '\n'))) {
        *end = '\0';
        take_line(t, t->lines.data);
        buf_drop(&t->lines, (size_t)(end - t->lines.data) + 1);
    }
}

static bool trial_is_over(const struct told *t) {
    for (unsigned i = 0; i < t->n; i++) {
        const struct trial *r = &t->trials[i];
        bool has_live = config_twin(t->config, i) < t->config->nprofiles;
        if (r->programs.state == TRIAL_NONE ||
            (r->programs.state == TRIAL_READY && has_live && r->live.state == TRIAL_NONE))
            return false;
    }
    return true;
}

static void wait_for_all(struct told *t, struct warden *w) {
    uint64_t until = now_ns() + ms_to_ns(WITHIN_S * 1000);
    while (!trial_is_over(t) && now_ns() < until) {
        struct pollfd p = {.fd = w->ready, .events = POLLIN};
        int rc = poll(&p, 1, (int)ns_to_ms(until - now_ns()) + 1);
        if (rc < 0 && errno != EINTR)
            return;
        if (rc <= 0)
            continue;
        int more = warden_read(w, &t->lines);
        take_lines(t);
        if (!more)
            return;
    }
}

static void give_up(struct trial_half *h) {
    if (h->state != TRIAL_NONE)
        return;
    h->state = TRIAL_BROKEN;
    snprintf(h->why, sizeof h->why, "it was not ready after %d s", WITHIN_S);
}

int trial_run(struct config *c, struct trial *ret, unsigned n, struct err *e) {
    struct told t = {.config = c, .trials = ret, .n = n, .lines = BUF_INIT};
    struct warden w = WARDEN_INIT;
    AUTO_FD listening = -1;
    AUTO_FD sock = -1;
    c->log_level = LOG_ERROR; /* what it would say otherwise is told by us */
    c->http.listeners = 0;
    for (unsigned i = 0; i < c->nprofiles; i++)
        c->profiles[i].pool = 0;
    if (listen_private(&listening, &sock, e) < 0 || warden_start(c, listening, NULL, &w, e) < 0)
        return -1;
    wait_for_all(&t, &w);
    warden_stop(&w, c, NULL);
    buf_done(&t.lines);
    if (t.problem[0])
        return err_user(e, "engine_failed", "%s", t.problem);
    for (unsigned i = 0; i < n; i++) {
        give_up(&ret[i].programs);
        if (ret[i].programs.state == TRIAL_READY && config_twin(c, i) < c->nprofiles)
            give_up(&ret[i].live);
    }
    return 0;
}
