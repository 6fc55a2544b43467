/* cloche, the command line: finds the verb and hands over. Each verb is a file and parses its own
 * options. */

#include "base/buf.h"
#include "base/nearest.h"
#include "cli/config.h"
#include "cli/doctor.h"
#include "cli/key.h"
#include "cli/mcp.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/serve.h"
#include "cli/status.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int verb_version(int argc, char **argv);
static int verb_help(int argc, char **argv);

static const struct verb {
    const char *name;
    int (*fn)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"run", verb_run, "run a Python program in a fresh sandbox"},
    {"sandbox", verb_sandbox, "make, use and end live sandboxes of a server"},
    {"shell", verb_sandbox, "open a Python prompt in a sandbox"},
    {"mcp", verb_mcp, "be an MCP server on stdin and stdout, for Claude and other clients"},
    {"profile", verb_profile, "build an environment with packages, list and remove them"},
    {"serve", verb_serve, "keep an engine with warm sandboxes running"},
    {"status", verb_status, "say how a running engine or server is doing"},
    {"doctor", verb_doctor, "check what isolation this machine gives"},
    {"config", verb_config, "print every setting, its value and where it came from"},
    {"key", verb_key, "make, list and revoke the API keys of the HTTP service"},
    {"version", verb_version, "print the version"},
    {"help", verb_help, "print this"},
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static int verb_version(int argc, char **argv) {
    (void)argc;
    (void)argv;
    puts("cloche " CLOCHE_VERSION);
    return 0;
}

static int verb_help(int argc, char **argv) {
    (void)argc;
    (void)argv;
    puts("cloche runs untrusted Python in warm, isolated sandboxes.\n");
    for (size_t i = 0; i < VERBS; i++)
        printf("  cloche %-9s %s\n", verbs[i].name, verbs[i].help);
    puts("\n`cloche VERB --help` says more about each verb.");
    return 0;
}

/* A descriptor opened later must not become somebody's standard stream. */
static void fill_standard_streams(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

static const struct verb *find_verb(const char *word) {
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, word) == 0)
            return &verbs[i];
    return NULL;
}

static void bad_verb(const char *word, struct err *e) {
    struct nearest near = {.word = word};
    AUTO_BUF all = BUF_INIT;
    for (size_t i = 0; i < VERBS; i++) {
        nearest_offer(&near, verbs[i].name);
        buf_addf(&all, "%s%s", i ? ", " : "", verbs[i].name);
    }
    report_bad_verb("", &near, all.data, e);
}

int main(int argc, char **argv) {
    struct err e;
    fill_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        verb_help(argc, argv);
        return EXIT_CLOCHE;
    }
    const struct verb *v = find_verb(argv[1]);
    if (!v) {
        bad_verb(argv[1], &e);
        return report(&e, false);
    }
    int status = v->fn(argc - 1, argv + 1);
    /* What was printed may have gone to a full disk. */
    if (fflush(stdout) != 0 && status == 0)
        status = EXIT_CLOCHE;
    return status;
}
