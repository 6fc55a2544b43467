#pragma once
/* All that a server may ask an init for: see questions.c. */

#include "init/internal.h"

enum init_stage {
    INIT_FRESH,   /* no kernel has entered yet: nobody can know this sandbox */
    INIT_ONESHOT, /* one program runs here, and no more */
    INIT_LIVE,
    INIT_STAGES_
};

/* Reads one from the request socket and answers it; false when there is none. Leaves, and the
 * sandbox with it, when the server is gone or asks what it may not. */
bool questions_serve(struct init *b);
bool questions_allows(enum wire_type type, enum init_stage stage);
/* Every process but ourselves; an errno, 0 when nobody is left. */
int questions_kill_all(void);
