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

int remote_exec(char **argv, bool json) {
    struct err e;
    AUTO_FREE char *dir = NULL;
    if (paths_libexec(&dir, &e) < 0)
        return report(&e, json);
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "%s/cloche-remote", dir);
    execv(path.data, argv);
    err_user(&e, "engine_failed", "cannot start %s: %s", path.data, strerror(errno));
    return report(&e, json);
}

/* Its options are read where they are used. */
int verb_sandbox(int argc, char **argv) {
    bool json = false;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        json |= strcmp(argv[i], "--json") == 0;
    return remote_exec(argv, json);
}
