/* See tell.h. The server is whoever listens on the engine's socket: `cloche serve` itself does, so
 * the kernel tells its pid, and that is who SIGHUP is for. */

#include "profile/tell.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/report.h"
#include "cli/status.h"
#include "config/options.h"
#include "supervisor/listen.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define WITHIN_S 60 /* an interpreter that imports much */
#define KNOWN_S  10 /* to read a configuration */
#define STEP_MS  50

static const json_t *find_profile(const json_t *state, const char *name) {
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(state, "profiles"), i, one) {
        const char *its = json_string_value(json_object_get(one, "name"));
        if (its && strcmp(its, name) == 0)
            return one;
    }
    return NULL;
}

void tell_look(const struct options *o, const char *profile, struct told *ret) {
    AUTO_BUF json = BUF_INIT;
    json_auto_t *state = NULL;
    struct err ignored;
    *ret = (struct told){0};
    if (status_ask(options_text(o, "socket"), &json, &ignored) < 0 ||
        json_read(json.data, json.len, 16, &state, &ignored) < 0)
        return;
    const json_t *p = find_profile(state, profile);
    ret->state = TELL_UNKNOWN;
    if (!p)
        return;
    const char *how = json_string_value(json_object_get(p, "state"));
    const char *what = json_string_value(json_object_get(p, "what"));
    ret->state = !how                         ? TELL_STARTING
                 : strcmp(how, "ready") == 0  ? TELL_READY
                 : strcmp(how, "broken") == 0 ? TELL_BROKEN
                                              : TELL_STARTING;
    const char *stamp = json_string_value(json_object_get(p, "stamp"));
    snprintf(ret->stamp, sizeof ret->stamp, "%s", stamp ? stamp : "");
    ret->busy = (unsigned)json_integer_value(json_object_get(p, "busy"));
    snprintf(ret->what, sizeof ret->what, "%s", what ? what : "");
}

/* The one that listens; 0: nobody, or not ours to tell. */
static pid_t find_server(const char *path) {
    struct ucred who;
    socklen_t len = sizeof who;
    struct err ignored;
    AUTO_FD sock = -1;
    if (listen_connect(path, &sock, &ignored) < 0 ||
        getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return 0;
    return who.pid;
}

/* Whether it has read the profiles since. */
static bool has_read(const struct told *before, const struct told *now, bool is_gone) {
    if (is_gone)
        return now->state == TELL_UNKNOWN;
    return now->state != TELL_UNKNOWN && strcmp(before->stamp, now->stamp) != 0;
}

static void say(const char *profile, const struct told *t, bool is_read, bool is_gone) {
    AUTO_BUF line = BUF_INIT;
    if (t->state == TELL_NONE)
        return;
    if (is_gone && is_read)
        buf_addf(&line, "the server has given up profile %s", profile);
    else if (is_read && t->state == TELL_READY)
        buf_addf(&line, "the server has profile %s", profile);
    else if (is_read && t->state == TELL_BROKEN)
        buf_addf(&line, "the server cannot use profile %s: %s", profile, t->what);
    else
        buf_addf(&line,
                 "the server does not read profile %s again: does it have another profiles_dir, or "
                 "--profiles without it? Its log says more",
                 profile);
    report_say(line.data);
}

void tell_reload(const struct options *o, const char *profile, const struct told *before,
                 bool is_gone) {
    const char *path = options_text(o, "socket");
    pid_t server = find_server(path);
    if (server <= 0)
        return; /* the next one reads it */
    if (kill(server, SIGHUP) < 0) {
        AUTO_BUF line = BUF_INIT;
        buf_addf(&line, "the server (pid %d) cannot be told (%s): send it SIGHUP", (int)server,
                 strerror(errno));
        report_say(line.data);
        return;
    }
    uint64_t start = now_ms();
    struct told t;
    bool is_read;
    for (;;) {
        tell_look(o, profile, &t);
        is_read = has_read(before, &t, is_gone);
        uint64_t most_s = is_read ? WITHIN_S : KNOWN_S;
        if (t.state == TELL_NONE || (is_read && t.state != TELL_STARTING) ||
            now_ms() > start + most_s * 1000)
            break;
        poll(NULL, 0, STEP_MS);
    }
    say(profile, &t, is_read, is_gone);
}
