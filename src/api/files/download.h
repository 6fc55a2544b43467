#pragma once
/* A file as the reply to GET or HEAD: ranges, tags and times of modification, once for all files.
 */

#include "api/core/call.h"

#include <time.h>

struct download {
    const char *tag;  /* quoted; changes with the bytes */
    const char *name; /* for those who save it */
    time_t modified;
    uint64_t size;
    const char *type; /* NULL: bytes, to be saved; otherwise to be shown */
};

/* What it may be beside a 200, for the rows of routes. */
extern const struct api_reply download_replies[];
#define DOWNLOAD_REPLIES                                                                           \
    {206, "the bytes that Range asks for", "application/octet-stream", NULL},                      \
        {304, "the client has it: If-None-Match", NULL, NULL}, {                                   \
        0                                                                                          \
    }
#define ERRORS_OF_DOWNLOAD "bad_range "

/* Takes the descriptor, of a regular file. */
void download_reply(struct call *c, const struct download *d, int *fd);
