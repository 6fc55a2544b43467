#pragma once
/* A directory of a live sandbox as tar.gz; a file is an archive of its own. */

#include "api/core/call.h"

struct archive_form {
    const char *type;    /* of the reply */
    const char *whole;   /* what the workspace is called, for those who save it; NULL: no name */
    bool only_files;     /* directories and links are left out */
    bool only_directory; /* a file is none: not found */
};
void files_archive(struct call *c, const char *id, const char *path, const struct archive_form *f);
