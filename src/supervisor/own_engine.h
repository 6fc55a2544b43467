#pragma once
/* An engine for one program: started by `run` where none is running, gone with it. */

#include "base/err.h"
#include "config/config.h"
#include "supervisor/launch.h"

struct options;

struct private_engine {
    struct config config;
    struct warden warden;
};
#define PRIVATE_ENGINE_INIT                                                                        \
    { .warden = WARDEN_INIT }

/* What the program is, as far as it decides which profiles to start. */
struct private_program {
    const char *profile; /* "auto", or a name */
    const char *code;
    size_t code_len;
};

/* *ret_sock is a connection to it; it may still be starting. */
int private_start(struct options *o, const struct private_program *p, struct private_engine *ret,
                  int *ret_sock, struct err *e);
/* After the connection was lost: takes the engine down and fills *e with why it went, or with
 * `lost` when it knows no reason. */
void private_explain(struct private_engine *p, const char *lost, struct err *e);
/* Takes it down and waits until it is. Accepts PRIVATE_ENGINE_INIT. */
void private_end(struct private_engine *p);
