#pragma once
/* The command lines of `cloche sandbox VERB` and `cloche shell`, parsed. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum sandbox_verb {
    SANDBOX_CREATE,
    SANDBOX_LIST,
    SANDBOX_SHOW,
    SANDBOX_DELETE,
    SANDBOX_EXEC,
    SANDBOX_TERMINAL, /* `cloche sandbox shell` */
    SANDBOX_PUT,
    SANDBOX_GET,
    SANDBOX_LS,
    SANDBOX_LOGS,
    SANDBOX_INTERRUPT,
    SANDBOX_RESTART,
    SANDBOX_PAUSE,
    SANDBOX_RESUME,
    SANDBOX_EXTEND,
    SANDBOX_NETWORK,
    SANDBOX_PORTS,
    SANDBOX_LINK,
    SANDBOX_PROMPT, /* `cloche shell` */
    SANDBOX_VERBS_
};

struct sandbox_words {
    const char **items; /* owned array of pointers into argv */
    unsigned n;
};

struct sandbox_options {
    enum sandbox_verb verb; /* SANDBOX_VERBS_: only help was asked for */
    bool help, json, keep, follow, details, recursive, background, uses_stdin, none, open, listen,
        all;
    const char *network, *server, *key_file, *profile, *name, *kernel, *code, *shell, *cwd, *images,
        *image_dir; /* each borrowed, or NULL */
    uint32_t ttl_s, idle_s;
    struct limits limits;                             /* 0: not said */
    struct sandbox_words metadata, env, files, allow; /* repeated options */
    struct sandbox_words words;                       /* what is no option */
    struct sandbox_words command;                     /* exec: what stands behind -- */
};

/* argv[0] is "sandbox" or "shell". Whether --json was asked for is known in ret even when this
 * fails. */
int sandbox_options_parse(int argc, char **argv, struct sandbox_options *ret, struct err *e);
void sandbox_options_done(struct sandbox_options *o);
void sandbox_options_help(enum sandbox_verb verb);
