#pragma once
/* All that a server may ask the warden for: see requests.c. */

#include "warden/warden.h"

/* How far the sandbox is that a request names, as far as the server has been told. */
enum slot_stage {
    STAGE_NONE,    /* the request names none */
    STAGE_GONE,    /* there is none of this number any more */
    STAGE_SECRET,  /* this server was never told of it: it is being made, or was another's */
    STAGE_ONESHOT, /* made, for one program */
    STAGE_LIVE,    /* made, and more kernels may come */
    STAGE_KEPT,    /* the same, and it outlives the server */
    STAGE_ENDING,  /* the server has given it up */
    STAGES_
};

/* SECURITY: false when this server may not ask that now, or what it says makes no sense. It is to
 * be ended then. */
bool requests_serve(struct warden *w, struct wire_in *in);
bool requests_allows(enum wire_type type, enum slot_stage stage);
