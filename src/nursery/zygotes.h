#pragma once
/* The zygotes of a nursery: see zygotes.c. */

#include "nursery/nursery.h"

int zygotes_init(struct nursery *n, struct err *e);
int zygotes_start(struct nursery *n, struct err *e);
/* Gives waiting kernels to zygotes that can take them. */
void zygotes_dispatch(struct nursery *n);
/* A child ended: true if it was a zygote. */
bool zygotes_reaped(struct nursery *n, pid_t pid, int status);
/* Whether a zygote in this state may say that. */
bool zygotes_allows(enum wire_type type, enum zygote_state state);
