#pragma once
/* The command line of `cloche run`, parsed. */

#include "base/err.h"
#include "wire/run.h"

#include <stdbool.h>

struct options;

struct run_options {
    bool help, json, verbose;
    const char *code;     /* -c; NULL otherwise. Pointers are into argv. */
    const char *file;     /* FILE or "-"; NULL with -c */
    const char *out;      /* --out, or NULL */
    const char *server;   /* --server, or NULL */
    const char *key_file; /* --key-file, or NULL */
    const char *network;  /* --network, or NULL */
    bool socket_named;    /* --socket */
    bool config_named;    /* --config */
    const char **inputs;  /* owned array: --file */
    unsigned ninputs;
    struct run_msg msg; /* limits, profile, args, env, flags; no code yet */
};

/* Flags that are settings (--socket, --config) go into `o`. Whether --json was asked for is known
 * in ret even when this fails. */
int run_options_parse(int argc, char **argv, struct options *o, struct run_options *ret,
                      struct err *e);
void run_options_done(struct run_options *r);
void run_options_help(void);
