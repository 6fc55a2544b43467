#pragma once
/* The connections of a sandbox: asked for, made, judged again with each policy. A connection has
 * the id that its init gave it. Its socket is ours until it is connected. */

#include "gate/gate.h"

/* What init says; -1: nothing that an init may say. */
int links_ask(struct attachment *a, struct wire_in *in, struct err *e);
int links_withdraw(struct attachment *a, struct wire_in *in, struct err *e);
int links_hello(struct attachment *a, struct wire_in *in, struct err *e);
int links_stands(struct attachment *a, struct wire_in *in, struct err *e);
int links_end(struct attachment *a, struct wire_in *in, struct err *e);

/* With another policy, or other addresses of the host: how many were closed. */
unsigned links_judge(struct attachment *a);
/* Another channel: what was on its way is asked for again there, and what is open is said again;
 * links_confirmed forgets what was not. */
void links_renew(struct attachment *a);
void links_confirmed(struct attachment *a);
void links_free(struct attachment *a);
/* Tells the server how many there are, if that is more than it knows; `less`: or less. */
void links_tell_open(struct attachment *a, bool less);
