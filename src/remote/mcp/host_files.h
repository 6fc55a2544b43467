#pragma once
/* ipybox's upload_file and download_file: they name files of the client's machine, so they are done
 * here and not by the server. Only files below the directories of --allowed-dir are touched; links
 * are resolved before that is judged. */

#include "base/err.h"
#include "remote/mcp/message.h"

#include <stdbool.h>

struct home;
struct host_files;
struct mcp_options;
struct pump;

/* *ret is NULL where these tools are not asked for. */
int host_files_new(const struct mcp_options *o, const struct home *home, struct host_files **ret,
                   struct err *e);
void host_files_free(struct host_files *h);
/* Adds the tools to the answer of tools/list, where it is the last page. False: it is none. */
bool host_files_add_tools(json_t *answer);
/* True: the message is a call of one of them, and has or gets its answer. */
bool host_files_take(struct host_files *h, struct pump *p, const struct message *m);
