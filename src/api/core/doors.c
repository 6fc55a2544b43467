/* See doors.h. The door's name is the id of its sandbox: http.c gives it to all that came in by it,
 * so that no request can be taken for one of another sandbox, or of the main port, whatever became
 * of the door meanwhile.
 *
 * SECURITY: a door is on 127.0.0.1 only, whatever the main port listens on, and everything that is
 * asked of a request there (host, origin, key, limits) is asked here too. The kernel chooses the
 * port. A later door may have the same one, so a client that is late meets another sandbox; it
 * needs a key of that one's tenant. */

#include "api/core/doors.h"

#include "api/core/quota.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/live/live.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BACKLOG 128

struct door {
    struct door *next;
    struct api *api;
    char tenant[65], id[ID_MAX];
    struct live_watcher watcher;
};

/* ---- how many ---- */

static bool is_any_spoken(const struct api *a) {
    unsigned i = 0;
    while (i < a->nspeakers && !(a->speakers[i].rank && a->speakers[i].dialect->at_doors))
        i++;
    return i < a->nspeakers;
}

int doors_room(const struct api *a, const char *tenant, struct problem *p) {
    unsigned most = a->config->live_listeners, all = 0, own = 0;
    if (most == 0)
        return problem_set(p, "cannot_listen", "sandboxes get no ports of their own here");
    if (!is_any_spoken(a))
        return problem_set(p, "cannot_listen",
                           "none of the dialects that a sandbox's own port is "
                           "for is spoken here");
    for (const struct door *d = a->doors; d; d = d->next) {
        all++;
        own += strcmp(d->tenant, tenant) == 0;
    }
    if (all >= most)
        return problem_set(p, "too_many_listeners",
                           "%u sandboxes have ports of their own, as many as may", all);
    if (own >= quota_share(a, tenant, most))
        return problem_set(p, "too_many_listeners",
                           "%u sandboxes of this tenant have ports of their own, its half of all",
                           own);
    return 0;
}

/* ---- open and closed ---- */

/* A port of 0 is any free one. */
static int listen_at(uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *e) {
    const int one = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_sys(e, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* connections inherit it */
    if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return err_sys(e, "listen on port %u of 127.0.0.1", port);
    *ret_port = ntohs(at.sin_port);
    *ret_fd = fd_take(&fd);
    return 0;
}

static void door_on_end(struct live_watcher *w, const struct err *why) {
    struct door *d = w->arg;
    (void)why;
    http_close_door(d->api->http, d->id);
    LIST_REMOVE(&d->api->doors, d, next);
    free(d);
}

static int open_at(struct api *a, struct live *l, uint16_t port, struct err *e) {
    AUTO_FD fd = -1;
    if (listen_at(port, &fd, &port, e) < 0 || http_listen(a->http, &fd, live_id(l), e) < 0)
        return -1;
    struct door *d = xcalloc(1, sizeof *d);
    d->api = a;
    snprintf(d->tenant, sizeof d->tenant, "%s", live_tenant(l));
    snprintf(d->id, sizeof d->id, "%s", live_id(l));
    d->watcher = (struct live_watcher){.on_end = door_on_end, .arg = d};
    live_watch(l, &d->watcher);
    LIST_PUSH(&a->doors, d, next);
    live_set_port(l, port);
    log_info("live sandbox listens id=%s port=%u", live_id(l), port);
    return 0;
}

int doors_open(struct api *a, struct live *l, struct problem *p) {
    struct err e;
    if (doors_room(a, live_tenant(l), p) < 0)
        return -1;
    if (open_at(a, l, 0, &e) == 0)
        return 0;
    log_error("no port for a live sandbox id=%s error=%s", live_id(l), log_text(e.text));
    return problem_set(p, "no_port", "no port could be opened for the sandbox");
}

static bool has_door(const struct api *a, const struct live *l) {
    const struct door *d = a->doors;
    while (d && strcmp(d->id, live_id(l)) != 0)
        d = d->next;
    return d != NULL;
}

void doors_adopt(struct api *a) {
    struct engine *g = a->o.engine;
    struct err e;
    for (struct live *l = live_next(g, NULL, NULL); l; l = live_next(g, NULL, l)) {
        if (live_port(l) == 0 || has_door(a, l) || open_at(a, l, live_port(l), &e) == 0)
            continue;
        log_error("a live sandbox has lost its port id=%s error=%s", live_id(l), log_text(e.text));
        live_set_port(l, 0);
    }
}

/* ---- for handlers ---- */

bool call_at_door(const struct call *c) {
    return http_door(c->req) != NULL;
}

bool call_means(const struct call *c, const struct live *l) {
    const char *door = http_door(c->req);
    return !door || strcmp(door, live_id(l)) == 0;
}

struct live *call_door_live(struct call *c) {
    struct err e;
    struct live *l = live_find(c->api->o.engine, c->who.tenant, http_door(c->req), &e);
    if (!l)
        call_fail(c, &e);
    return l;
}
