#pragma once
/* Keeps a sandbox from using a large disk as memory. */

struct engine;
struct sandbox;

/* From when it has a guest, or its guest has other limits. */
void memory_watch(struct sandbox *s);
/* The same for one from an earlier server, whose files may be that one's: those that the group's
 * own number does not explain. */
void memory_inherit(struct sandbox *s);
/* Something begins in one. */
void memory_wake(struct engine *g);
