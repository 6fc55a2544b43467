#pragma once
/* What the client hears of a call that takes long: see internal.h, which declares it, and mcp_say.
 * The client wants it if its request has a progressToken. */

#define PROGRESS_LEAST_MS 1000 /* between two */
#define PROGRESS_MOST_MS  5000
#define PROGRESS_TEXT     200 /* characters of a message */
