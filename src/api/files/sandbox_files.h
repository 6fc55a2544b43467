#pragma once
/* The files of a live sandbox in the words of a dialect: what the native paths do, with another
 * reply. For api/ only. */

#include "api/files/init_call.h"

extern const struct route_table sandbox_file_routes, archive_routes, unpack_routes;

/* It is done. */
typedef void files_done_fn(struct call *c, const char *path);

/* The body, as it comes, into a file or out of a tar.gz into a directory. The body is on hold, or
 * nothing of it was read yet. `done` NULL: the native reply. */
void files_put(struct call *c, const char *id, const char *path, files_done_fn *done);
void files_unpack(struct call *c, const char *id, const char *path, files_done_fn *done);

/* The reply to I_OPEN: the bytes of the file that it brings. `type` NULL: an octet-stream. */
void box_send_file(struct box *b, struct wire_in *in, const char *type);
/* A file's bytes; a directory is no file. */
void files_get(struct call *c, const char *id, const char *path, const char *type);
/* 204; likewise. */
void files_remove(struct call *c, const char *id, const char *path);

struct archive_form {
    const char *type;    /* of the reply */
    const char *whole;   /* what the workspace is called, for those who save it; NULL: no name */
    bool only_files;     /* directories and links are left out */
    bool only_directory; /* a file is none: not found */
};
void files_archive(struct call *c, const char *id, const char *path, const struct archive_form *f);
