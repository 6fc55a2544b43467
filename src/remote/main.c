/* cloche-remote: `cloche run --server`, `cloche status --server`, `cloche sandbox`, `cloche
 * shell` and `cloche mcp`, started by cloche with the same arguments. A program of its own, because
 * libcurl brings some twenty libraries along whose loading takes longer than a run does. */

#include "cli/report.h"
#include "remote/mcp/mcp_cmd.h"
#include "remote/run.h"
#include "remote/sandbox/sandbox_cmd.h"
#include "remote/status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc > 0 && strcmp(argv[0], "run") == 0)
        return remote_run(argc, argv);
    if (argc > 0 && strcmp(argv[0], "status") == 0)
        return remote_status(argc, argv);
    if (argc > 0 && strcmp(argv[0], "mcp") == 0)
        return remote_mcp(argc, argv);
    if (argc > 0 && (strcmp(argv[0], "sandbox") == 0 || strcmp(argv[0], "shell") == 0))
        return remote_sandbox(argc, argv);
    fputs("cloche: cloche-remote is started by `cloche run --server URL`\n", stderr);
    return EXIT_CLOCHE;
}
