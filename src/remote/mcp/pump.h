#pragma once
/* Between a client on stdin and stdout and a server's /mcp. */

#include "base/buf.h"
#include "base/err.h"
#include "remote/mcp/flight.h"
#include "remote/mcp/lines.h"
#include "remote/mcp/message.h"
#include "remote/mcp/out.h"

#include <stdbool.h>

struct host_files;

struct pump {
    struct remote *remote;    /* borrowed, as all that is set at the start: */
    int signals;              /* a signalfd */
    int own;                  /* readable when a server of our own has ended; or -1 */
    const char *path;         /* of the server's MCP, with the query */
    const char *header;       /* one more of each request; or NULL */
    struct host_files *files; /* upload_file and download_file; or NULL */

    struct flights flights;
    struct lines lines;
    struct out out;
    bool eof, over;
    int signal;  /* that ended it, or 0 */
    bool called; /* a tool was called: there may be a sandbox */
    /* Of the legacy protocol: what initialize agreed on, and the header of its session. */
    char version[MCP_VERSION_MAX];
    char session[256];
};

/* Returns when the client has gone and has all its answers, or a signal came, or the server of our
 * own has ended (an error). */
int pump_run(struct pump *p, struct err *e);
void pump_done(struct pump *p);
/* An answer of ours to the client: a JSON-RPC error. */
void pump_answer_error(struct pump *p, const json_t *id, int code, const char *text);
