#pragma once
/* `cloche mcp` is cloche-remote (src/remote/mcp). What only we can do for it, we do before: where
 * nobody names a server, we look for one of this user's that runs, and start a keeper
 * (supervisor/keeper.h), which starts a server when it is told to. */

/* The variables of the environment that say so: the descriptor of the keeper's socket; the URL of
 * the server that runs, if one does. */
#define MCP_OWN_VARIABLE  "CLOCHE_MCP_KEEPER"
#define MCP_NEAR_VARIABLE "CLOCHE_MCP_NEAR"
/* The path of cloche itself, for what is pasted. */
#define MCP_PROGRAM_VARIABLE "CLOCHE_MCP_PROGRAM"

int verb_mcp(int argc, char **argv);
