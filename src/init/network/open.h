#pragma once
/* How a link opens: see open.c. */

#include "init/network/link.h"

/* From LINK_ASKED: what the caller is told, and what it finds. */
void link_let_go_on(struct init *b, struct link *l);
/* From LINK_HELD, once both its SYN and the result are there. */
void link_go_further(struct network *n, struct link *l);
/* The program hears of a failure once its SYN is there. */
void link_fail(struct network *n, struct link *l);

void link_on_syns(struct init *b, int raw);
/* Something came of an opening. */
void link_on_open(struct init *b, unsigned index);
