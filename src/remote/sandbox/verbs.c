/* See verbs.h. */

#include "remote/sandbox/verbs.h"

#include <stddef.h>

const struct sandbox_verb_words sandbox_verbs[SANDBOX_VERBS_] = {
    [SANDBOX_CREATE] =
        {"create", 0, 0, NULL, "make one and print its id",
         "cloche sandbox create [OPTIONS]\n"
         "\n"
         "Makes a sandbox whose state stays from one call to the next, and prints its "
         "id.\n"
         "\n"
         "  --profile NAME          auto (the one with most modules), base, data, …\n"
         "  --name NAME             to find it by, instead of its id\n"
         "  --ttl SECONDS           how long it lives\n"
         "  --idle SECONDS          how long it lives when nobody uses it\n"
         "  --metadata KEY=VALUE    may be repeated; `list` can ask for it\n"
         "  --file HOST[:SANDBOX]   copy a file into /workspace; may be repeated\n"
         "  --env NAME=VALUE        set a variable; may be repeated\n"
         "  --network RULES         what it may reach: none, open, or names, addresses and @sets\n"
         "                          with commas\n"
         "  --listen                a port of its own, for clients of ipybox and Jupyter: see "
         "show\n"
         "  --json                  print the whole answer",
         "Limits of the sandbox:", "Limits of each cell:"},
    [SANDBOX_LIST] =
        {"list", 0, 0, NULL, "list them",
         "cloche sandbox list [--metadata KEY=VALUE]… [--json]\n"
         "\n"
         "Lists your sandboxes, oldest first; with --metadata those that have all of it."},
    [SANDBOX_SHOW] = {"show", 1, 1, "the sandbox's ID", "say all about one",
                      "cloche sandbox show ID [--json]\n"
                      "\n"
                      "Says all about a sandbox: its kernels, limits, usage, and when it ends."},
    [SANDBOX_DELETE] = {"delete", 0, SANDBOX_WORDS_MAX, NULL, "end some",
                        "cloche sandbox delete ID…\n"
                        "cloche sandbox delete --all [--metadata KEY=VALUE]…\n"
                        "\n"
                        "Ends sandboxes and all that runs in them. They are gone when it returns.\n"
                        "--all means all of yours; with --metadata those that have all of it."},
    [SANDBOX_EXEC] =
        {"exec", 1, 2, "the sandbox's ID", "run code or a command in one",
         "cloche sandbox exec ID [OPTIONS] CODE | -c CODE | FILE | -\n"
         "cloche sandbox exec ID [OPTIONS] --shell LINE | -- COMMAND…\n"
         "\n"
         "Runs Python in a kernel of a sandbox: variables stay for the next time. Output comes as\n"
         "it is printed, the value of a last expression is printed, figures are saved as files.\n"
         "Or runs a command: a line for the shell, or words. The exit status is the code's or the\n"
         "command's; 124 timeout, 130 interrupted, 125 a failure of cloche itself. Ctrl-C\n"
         "interrupts what runs, a second one leaves.\n"
         "\n"
         "  --kernel ID         another kernel than the first\n"
         "  --env NAME=VALUE    for this call; may be repeated\n"
         "  --images HOW        auto, inline (kitty, iTerm2), files or off\n"
         "  --image-dir DIR     where the files go (.)\n"
         "  --stdin             a command: give it our stdin, read to its end before\n"
         "  --cwd DIR           a command: where it starts\n"
         "  --background        a command: print its id and leave it running; see logs\n"
         "  --json              print the whole result as one line of JSON, nothing else",
         "Limits of the sandbox, from now on:",
         "Limits of this execution (--cpu is not for commands):"},
    [SANDBOX_TERMINAL] =
        {"shell", 1, 1, "the sandbox's ID", "sit at a terminal in one",
         "cloche sandbox shell ID [--cwd DIR]\n"
         "\n"
         "Opens a shell in a sandbox, at your terminal. `cloche shell` opens a Python "
         "prompt."},
    [SANDBOX_PUT] =
        {"put", 3, SANDBOX_WORDS_MAX, "one of ID, SOURCE and DESTINATION", "copy files into one",
         "cloche sandbox put ID SOURCE… DESTINATION\n"
         "\n"
         "Copies files and directories into a sandbox. DESTINATION is below /workspace; "
         "what\n"
         "is copied keeps its name when that is a directory, ends with / or there are "
         "several\n"
         "sources. - is stdin."},
    [SANDBOX_GET] = {"get", 3, SANDBOX_WORDS_MAX, "one of ID, SOURCE and DESTINATION",
                     "copy files out of one",
                     "cloche sandbox get ID SOURCE… DESTINATION\n"
                     "\n"
                     "Copies files and directories out of a sandbox. What is copied keeps its name "
                     "when\n"
                     "DESTINATION is a directory, ends with / or there are several sources. - is "
                     "stdout.\n"
                     "Links in directories are left out."},
    [SANDBOX_LS] = {"ls", 1, 2, "the sandbox's ID", "list the files of one",
                    "cloche sandbox ls ID [PATH] [-l] [-R] [--json]\n"
                    "\n"
                    "Lists files, beginning at /workspace.\n"
                    "\n"
                    "  -l   with mode, size and time\n"
                    "  -R   with all that is below"},
    [SANDBOX_LOGS] = {"logs", 1, 2, "the sandbox's ID", "print what a command printed",
                      "cloche sandbox logs ID [COMMAND] [-f] [--json]\n"
                      "\n"
                      "Prints what a command has printed, or without COMMAND lists the commands.\n"
                      "\n"
                      "  -f   go on as more comes, until it ends"},
    [SANDBOX_INTERRUPT] = {"interrupt", 1, 1, "the sandbox's ID", "interrupt what runs in one",
                           "cloche sandbox interrupt ID [--kernel ID]\n"
                           "\n"
                           "Raises KeyboardInterrupt in what a kernel runs; its variables stay."},
    [SANDBOX_RESTART] = {"restart", 1, 1, "the sandbox's ID", "give a kernel of one a fresh start",
                         "cloche sandbox restart ID [--kernel ID]\n"
                         "\n"
                         "Ends a kernel and starts it afresh: its variables are gone, files stay."},
    [SANDBOX_PAUSE] = {"pause", 1, 1, "the sandbox's ID", "freeze all that runs in one",
                       "cloche sandbox pause ID\n"
                       "\n"
                       "Freezes all that runs in a sandbox; `resume` lets it go on. It is idle "
                       "meanwhile."},
    [SANDBOX_RESUME] = {"resume", 1, 1, "the sandbox's ID", "let one that was paused go on",
                        "cloche sandbox resume ID\n"
                        "\n"
                        "Lets a sandbox that was paused go on where it was."},
    [SANDBOX_EXTEND] =
        {"extend", 1, 1, "the sandbox's ID", "let one live longer",
         "cloche sandbox extend ID [--ttl SECONDS] [--idle SECONDS]\n"
         "\n"
         "Lets a sandbox live for so long from now on, or without --ttl for as long as "
         "it\n"
         "was given at first; --idle is how long it lives when nobody uses it. Prints "
         "when\n"
         "it ends."},
    [SANDBOX_NETWORK] =
        {"network", 1, 1, "the sandbox's ID", "say or change what one may reach",
         "cloche sandbox network ID [--allow RULES… | --none | --open]\n"
         "\n"
         "Prints what a sandbox may reach of the network, as JSON. With an option it is that from\n"
         "now on, instead of what was; connections that are no longer allowed are reset.\n"
         "\n"
         "  --allow RULES   names, addresses and @sets, with commas; may be repeated:\n"
         "                  pypi.org:443,*.example.org,10.1.0.0/16:5432,@npm\n"
         "  --none          nothing\n"
         "  --open          every public address"},
    [SANDBOX_PORTS] =
        {"ports", 1, 1, "the sandbox's ID", "list the ports on which something listens inside",
         "cloche sandbox ports ID [--json]\n"
         "\n"
         "Lists the ports of a sandbox that connections can reach, and where the server has\n"
         "them: a path of its own, or a host where the operator gave a domain for that."},
    [SANDBOX_LINK] =
        {"link", 2, 2, "one of ID and PORT", "make a link that opens a port to a browser",
         "cloche sandbox link ID PORT [--ttl SECONDS] [--json]\n"
         "\n"
         "Prints a URL that opens what listens at a port of a sandbox in a browser, for an hour\n"
         "or for --ttl. Whoever has it may use that port until then, and no other."},
    [SANDBOX_PROMPT] =
        {"shell", 0, 1, NULL, NULL,
         "cloche shell [ID] [OPTIONS]\n"
         "\n"
         "Opens a Python prompt in a sandbox: in a fresh one that is deleted at the end, or in "
         "ID.\n"
         "Tab completes, an empty line ends a block, ?name explains, Ctrl-C interrupts, Ctrl-D\n"
         "leaves. Figures are shown where the terminal can, or saved.\n"
         "\n"
         "  --keep              leave the fresh sandbox alive, and print its id at the end\n"
         "  --profile NAME --name NAME --ttl SECONDS --idle SECONDS --metadata KEY=VALUE\n"
         "  --file HOST[:SANDBOX] --env NAME=VALUE --network RULES\n"
         "                      for the fresh one, as in `cloche sandbox create`\n"
         "  --kernel ID         another kernel of ID than the first\n"
         "  --images HOW        auto, inline (kitty, iTerm2), files or off\n"
         "  --image-dir DIR     where the files go (a temporary directory)",
         "Limits of the fresh sandbox:", "Limits of each cell:"},
};
