/* See own_engine.h. The socket has no name by the time the engine starts, and the only copy of the
 * listening end is the warden's: when that dies, our connection ends even if nobody accepted it. */

#include "supervisor/own_engine.h"

#include "base/fd.h"
#include "base/log.h"
#include "config/options.h"
#include "config/profiles.h"
#include "config/resolve.h"
#include "config/rules.h"
#include "supervisor/listen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

int own_engine_launch(struct own_engine *p, int *ret_sock, struct err *e) {
    AUTO_FD listening = -1;
    AUTO_FD sock = -1;
    if (listen_private(&listening, &sock, e) < 0 ||
        warden_start(&p->config, listening, NULL, &p->warden, e) < 0)
        return -1;
    *ret_sock = fd_take(&sock);
    return 0;
}

int own_engine_start(struct options *o, const struct own_program *p, struct own_engine *ret,
                     int *ret_sock, struct err *e) {
    struct config *c = &ret->config;
    if (options_resolve(o, c, e) < 0)
        return -1;
    if (profiles_narrow(c, p->profile, p->code, p->code_len, e) < 0)
        return -1;
    /* Its log shares stderr with the program; only what went wrong belongs there. */
    if (options_origin(o, "log_level") == ORIGIN_DEFAULT)
        c->log_level = LOG_WARN;
    /* Whoever starts it is its operator. */
    if (p->network && options_origin(o, "network") == ORIGIN_DEFAULT) {
        free(c->network);
        c->network = xstrdup(p->network);
        if (rules_check(c, e) < 0)
            return -1;
    }
    return own_engine_launch(ret, ret_sock, e);
}

/* The last line that begins with "problem " or tells of a broken profile. */
static const char *find_problem(char *lines) {
    const char *found = NULL;
    char *rest = lines, *line;
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, "problem ", 8) == 0)
            found = line + 8;
        else if (strncmp(line, "profile ", 8) == 0 && strstr(line, " broken"))
            found = line;
    }
    return found;
}

void own_engine_explain(struct own_engine *p, const char *lost, struct err *e) {
    AUTO_BUF lines = BUF_INIT;
    int status = warden_stop(&p->warden, &p->config, &lines);
    const char *problem = find_problem(lines.data);
    if (problem)
        err_user(e, "engine_failed", "%s", problem);
    else if (WIFSIGNALED(status))
        err_user(e, "engine_gone", "the private engine was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0)
        err_user(e, "engine_gone", "%s", lost);
    else
        err_user(e, "engine_failed", "the private engine left with status %d", WEXITSTATUS(status));
}

void own_engine_end(struct own_engine *p) {
    warden_stop(&p->warden, &p->config, NULL);
    config_done(&p->config);
}
