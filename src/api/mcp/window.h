#pragma once
/* A file of a sandbox, read for a model: numbered lines of a text, or all of an image or of any
 * file that is small. Beside the loop, a slice at a time; it touches nothing else. For api/mcp
 * only.
 *
 * SECURITY: a program may change the file meanwhile, and its lines may be of any length. */

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define WINDOW_LINES     2000u /* unless asked otherwise */
#define WINDOW_LINES_MAX 100000u
#define WINDOW_CHARS     30000u     /* of all lines */
#define WINDOW_LINE      2000u      /* bytes of a line that are shown */
#define WINDOW_WHOLE     (3u << 20) /* bytes of a file that is sent as it is */

enum window_kind {
    WINDOW_TEXT,   /* lines */
    WINDOW_IMAGE,  /* base64, and its type */
    WINDOW_BINARY, /* neither: its size only */
    WINDOW_BYTES,  /* all of it */
    WINDOW_LARGE,  /* more than that */
};

struct window {
    int fd;         /* owned, or -1 */
    bool whole;     /* all of it is wanted, whatever it is */
    uint64_t first; /* line that is shown first; 1 is that of the file */
    uint64_t lines; /* so many */
    /* what became of it */
    enum window_kind kind;
    const char *mime; /* a constant: of an image */
    struct buf text;
    uint64_t size;  /* of the file */
    uint64_t last;  /* line that is shown, or counted, last */
    bool more, cut; /* lines come after it; characters of a line are left out */
    bool failed;    /* it cannot be read */
    /* the inside */
    bool looked, line_open;
    uint64_t at, line_len, chars;
};
void window_done(struct window *w);
/* Reads a megabyte; false when it is through. */
bool window_slice(struct window *w);
