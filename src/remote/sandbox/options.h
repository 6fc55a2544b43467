#pragma once
/* The command lines of `cloche sandbox VERB` and `cloche shell`, parsed. */

#include "base/err.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum box_verb {
    BOX_CREATE,
    BOX_LIST,
    BOX_SHOW,
    BOX_DELETE,
    BOX_EXEC,
    BOX_TERMINAL, /* `cloche sandbox shell` */
    BOX_PUT,
    BOX_GET,
    BOX_LS,
    BOX_LOGS,
    BOX_INTERRUPT,
    BOX_RESTART,
    BOX_PAUSE,
    BOX_RESUME,
    BOX_EXTEND,
    BOX_PROMPT, /* `cloche shell` */
    BOX_VERBS_
};

struct box_words {
    const char **items; /* owned array of pointers into argv */
    unsigned n;
};

struct box_options {
    enum box_verb verb; /* BOX_VERBS_: only help was asked for */
    bool help, json, keep, follow, details, recursive, background, uses_stdin;
    const char *server, *key_file, *profile, *name, *kernel, *code, *shell, *cwd, *images,
        *image_dir; /* each borrowed, or NULL */
    uint32_t ttl_s, idle_s;
    struct limits limits;                  /* 0: not said */
    struct box_words metadata, env, files; /* repeated options */
    struct box_words words;                /* what is no option */
    struct box_words command;              /* exec: what stands behind -- */
};

/* argv[0] is "sandbox" or "shell". Whether --json was asked for is known in ret even when this
 * fails. */
int box_options_parse(int argc, char **argv, struct box_options *ret, struct err *e);
void box_options_done(struct box_options *o);
void box_options_help(enum box_verb verb);
