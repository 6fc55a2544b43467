#pragma once
/* `cloche mcp config`: what to paste into clients. */

struct mcp_options;

/* The command line's own options go into what is printed, but for --client and --server. */
void clients_print(const struct mcp_options *o, int argc, char **argv);
