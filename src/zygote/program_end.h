#pragma once
/* What plain Python does after a script's last statement: waiting for threads, exit functions, the
 * flush of the standard streams, and the end of the script's own objects. */

#include <stdbool.h>

/* False when something could not be flushed. After most programs nobody would notice the rest, and
 * it would be fifty pages copied for nothing: then only the flush is done. */
bool program_end(void);
