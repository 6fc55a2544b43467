#pragma once
/* How a zygote's memory lies, so that forking it is cheap and its children copy little. */

/* Before the preloads. */
void memory_begin(void);
/* After the preloads, before the first fork. */
void memory_settle(void);
/* When there is time for it: it takes as long as copying what the libraries have written. `life`
 * does what every kernel does; it is called in a child, which ends. */
void memory_snapshot(void (*life)(void));
