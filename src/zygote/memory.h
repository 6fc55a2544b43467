#pragma once
/* How a zygote's memory lies, so that forking it is cheap and its children copy little. */

/* Before the preloads. */
void memory_begin(void);
/* After the preloads, before the first fork. */
void memory_settle(void);
