#pragma once
/* The command line of `cloche mcp`. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>

struct mcp_words {
    const char **items; /* owned; each borrowed */
    unsigned n;
};

struct mcp_options {
    bool help;
    const char *server, *key_file; /* borrowed, as all below */
    const char *tools, *sandbox, *profile, *network;
    struct limits limits;
    /* Also by the names that ipybox gives them. */
    struct mcp_words env;          /* NAME=VALUE */
    struct mcp_words env_files;    /* files of such lines */
    struct mcp_words binds;        /* HOST:PATH */
    struct mcp_words allowed_dirs; /* of upload_file and download_file */
    struct mcp_words allowed_domains;
    const char *container_tag; /* means nothing here */
    const char *client;        /* of `cloche mcp config`; NULL: all */
    bool config;               /* it is that */
};

int mcp_options_parse(struct mcp_options *o, int argc, char **argv, struct err *e);
void mcp_options_done(struct mcp_options *o);
void mcp_options_help(void);
