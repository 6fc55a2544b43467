/* See remote.h. */

#include "cli/remote.h"

#include "base/buf.h"
#include "base/fd.h"
#include "cli/report.h"
#include "config/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *remote_named(const char *flag) {
    const char *url = flag ? flag : getenv("CLOCHE_SERVER");
    return url && *url ? url : flag;
}

static int exec_fellow(const char *program, char **argv, bool json) {
    struct err e;
    AUTO_FREE char *dir = NULL;
    if (paths_libexec(&dir, &e) < 0)
        return report(&e, json);
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "%s/%s", dir, program);
    execv(path.data, argv);
    err_user(&e, "engine_failed", "cannot start %s: %s", path.data, strerror(errno));
    return report(&e, json);
}

int remote_exec(char **argv, bool json) {
    return exec_fellow("cloche-remote", argv, json);
}

/* Their options are read where they are used. */
int verb_sandbox(int argc, char **argv) {
    return remote_exec(argv, report_wants_json(argc, argv));
}

int verb_profile(int argc, char **argv) {
    return exec_fellow("cloche-profile", argv, report_wants_json(argc, argv));
}
