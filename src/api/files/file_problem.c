/* See file_problem.h. */

#include "api/files/file_problem.h"

#include "api/files/paths.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    int errnum, status;
    const char *code, *remediation;
    bool retryable;
} known[] = {
    {ENOENT, 404, "no_such_path", "GET …/files lists what there is", false},
    {ENOTDIR, 404, "no_such_path", "GET …/files lists what there is", false},
    {EEXIST, 409, "path_taken", "delete what is there, or choose another", false},
    {EISDIR, 409, "path_taken", "delete the directory, or choose another", false},
    {ENOTEMPTY, 409, "not_empty", "add ?recursive=true", false},
    {EAGAIN, 409, "path_busy", "the program has a lease on it: try again", true},
    {EBUSY, 409, "path_busy", "files are made there meanwhile: try again", true},
    {ELOOP, 422, "bad_path", "it is a symbolic link: use what it leads to", false},
    {EXDEV, 422, "bad_path", "stay in the workspace", false},
    {EROFS, 403, "no_access", "this directory of the host can only be read", false},
    {EACCES, 403, "no_access", "the host keeps it from sandboxes", false},
    {EPERM, 403, "no_access", "the host keeps it from sandboxes", false},
    {EINVAL, 422, "bad_path", "use another path", false},
    {ENAMETOOLONG, 422, "bad_path", "names have at most 255 bytes", false},
    {ENXIO, 422, "bad_path", "only regular files have content", false},
};

int file_problem_disk_full(struct problem *p, const char *why) {
    *p = (struct problem){.status = 507,
                          .code = "disk_full",
                          .remediation = "delete files, or give the sandbox more disk "
                                         "(limits.disk_mb); it also has a number of files"};
    snprintf(p->text, sizeof p->text, "%s", why);
    return -1;
}

int file_problem_bad_path(struct problem *p, const char *path, const char *why) {
    *p = (struct problem){
        .status = 422, .code = "bad_path", .remediation = "use a relative path without \"..\""};
    paths_wrong(why, path, p->text, sizeof p->text);
    return -1;
}

int file_problem_busy(struct problem *p) {
    *p = (struct problem){.status = 503,
                          .code = "sandbox_busy",
                          .message = "too many requests for this sandbox's files wait",
                          .remediation = "try again later",
                          .retryable = true,
                          .retry_after_s = 1};
    return -1;
}

int file_problem(struct problem *p, int errnum, bool writes, const char *why) {
    if (errnum == ENOSPC || errnum == EDQUOT)
        return file_problem_disk_full(p, why);
    if (errnum == ENOTDIR && writes)
        errnum = EEXIST; /* a file is where a directory should be */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].errnum != errnum)
            continue;
        *p = (struct problem){.status = known[i].status,
                              .code = known[i].code,
                              .remediation = known[i].remediation,
                              .retryable = known[i].retryable};
        snprintf(p->text, sizeof p->text, "%s", why);
        return -1;
    }
    struct err e;
    err_set(&e, errnum, "init: %s", why);
    *p = problem_of(&e);
    return -1;
}
