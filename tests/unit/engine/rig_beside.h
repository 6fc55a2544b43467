#pragma once
/* Work beside the loop, and what kernels say that is read there: more words for scripts (rig.h).
 *
 *   say-file={JSON}        the kernel says that, in a file
 *   say-long={JSON}        and that, in a message of more than 4 KiB
 *   busy=N                 of the two threads beside the loop so many are at work, one for long
 *   short  idle            something short is done there; all that there was is done
 */

#include "rig.h"

/* One of those; false: it is another. `goes_on`: whether the engine has more to be done there. */
bool rig_beside_word(struct rig *r, const char *word, const char *value, bool (*goes_on)(void));
/* Behind each script. */
void rig_beside_end(struct rig *r);
