#pragma once
/* An engine for one program: started by `run` where none is running, gone with it. */

#include "base/err.h"
#include "config/config.h"
#include "supervisor/launch.h"

struct options;

struct own_engine {
    struct config config;
    struct warden warden;
};
#define OWN_ENGINE_INIT                                                                            \
    { .warden = WARDEN_INIT }

/* What the program is, as far as it decides which profiles to start. */
struct own_program {
    const char *profile; /* "auto", or a name */
    const char *code;
    size_t code_len;
    const char *network; /* what it is to reach; or NULL */
};

/* *ret_sock is a connection to it; it may still be starting. */
int own_engine_start(struct options *o, const struct own_program *p, struct own_engine *ret,
                     int *ret_sock, struct err *e);
/* The same where the configuration is there already. */
int own_engine_launch(struct own_engine *p, int *ret_sock, struct err *e);
/* After the connection was lost: takes the engine down and fills *e with why it went, or with
 * `lost` when it knows no reason. */
void own_engine_explain(struct own_engine *p, const char *lost, struct err *e);
/* Takes the engine down and waits until it is gone. Accepts OWN_ENGINE_INIT. */
void own_engine_end(struct own_engine *p);
