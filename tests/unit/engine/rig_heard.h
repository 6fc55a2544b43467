#pragma once
/* What the engine sent to those whom the rig plays: the warden, the inits, the kernels. */

struct rig;

/* Notes all of it (rig_say), and remembers what the script may answer. */
void rig_hear(struct rig *r);
