#pragma once
/* What programs in a sandbox ask for by name. */

#include "gate/gate.h"

int names_ask(struct attachment *a, struct wire_in *in, struct err *e);
/* Nobody waits for what is under way. */
void names_free(struct attachment *a);
