#pragma once
/* Questions to the user of the client: mcp_ask and mcp_ask_text of call.h, declared there and in
 * internal.h. Legacy clients get a request on the stream of the call and POST their response. A
 * modern client gets "input_required" as the answer; its call is parked, and goes on when the
 * client repeats its request with the answers and the state. */

#define ASK_MS        120000 /* then nobody answers */
#define ASK_PARKED    8  /* calls of one owner that wait at once; then the oldest gets nothing */
#define ASK_QUESTIONS 16 /* at once */
#define ASK_LENGTH    (256u << 10) /* bytes of a modern request that may ask: a state hashes it */
