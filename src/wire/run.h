#pragma once
/* A program to run, as it travels from the client to the server (C_RUN) and on to the kernel
 * (K_RUN), and what a kernel says when it is done (K_DONE). One encoding for both legs.
 *
 *   C_RUN, K_RUN: u32 flags, str profile, the limits (limits.h), u32 nargs, str…, u32 nenv,
 *                 str "K=V"…, bytes code; fd: code, if RUN_CODE_FD
 *   K_DONE:       u32 how, u32 exit_code, u64 cpu_us, str name, str value, u32 nlines, str
 *                 traceback lines…, bytes what a handler returned, as JSON; fd: the same when it
 *                 does not fit: a sealed memfd */

#include "wire/limits.h"
#include "wire/wire.h"

#define RUN_MAX_ARGS    256
#define RUN_MAX_ENV     256
#define RUN_MAX_CODE    (16u << 20)
#define RUN_MAX_STRINGS 30000u /* bytes of args and env together: WIRE_MAX has to hold more */
#define LIVE_ENV_MAX    32768u /* bytes as JSON: it goes into a journal, too */
#define RUN_MAX_FILES   1000
/* What `cloche run` says of a result whose files_truncated is true. */
#define RUN_FILES_CUT                                                                              \
    "not all files came out: there are more than 1000, or some lie deeper than 32 directories or " \
    "are larger than the disk"
/* Bytes of stdin that a client may have sent without the program having taken them; C_WANT gives
 * more. A program that does not read thus holds up its stdin and nothing else, signals least of
 * all. */
#define RUN_STDIN_WINDOW (256u << 10)

enum run_flag {
    RUN_LAST_LINE = 1,   /* print the value of a last expression */
    RUN_STDIN = 2,       /* the client sends C_STDIN; otherwise stdin is at its end at once */
    RUN_FILES = 4,       /* the client wants the files that were made or changed */
    RUN_CODE_FD = 8,     /* the code is in the message's descriptor */
    RUN_QUIET = 16,      /* no C_OUTPUT: the output is only in the result */
    RUN_RESTRICTED = 32, /* the policy of cell/policy.py is for it */
    RUN_LAST_PRINT = 64, /* print() the value of a last expression, unless it is None */
    RUN_FIGURES = 256,   /* plt.show() saves what it shows: cell/figures.py */
    RUN_HANDLER = 128,   /* call its handler(): code, event and context with NUL between, JSON */
    RUN_SHOWN = 512,     /* it has a display(), its figures are shown: cell/shown.py; by K_SAY */
    RUN_VALUE = 1024,    /* with that: so is the value of a last expression */
    RUN_PNG = 2048,      /* with that, the formats of figures: of FORMATS there, in that order */
    RUN_RETINA = 4096,
    RUN_JPEG = 8192,
    RUN_SVG = 16384,
    RUN_PDF = 32768,
    RUN_MEMORY = 65536,    /* init may not have said yet how much memory there is: wait for that */
    RUN_PACKAGES = 131072, /* the last of env is no variable: requirements for pip, a line each */
    RUN_ASKS = 262144,     /* with RUN_SHOWN: its input() and getpass() tell that they wait */
    RUN_TREE = 524288,     /* its tenant's profile is at ROOT_TREE: it has that on sys.path */
};
#define RUN_FORMATS    (RUN_PNG | RUN_RETINA | RUN_JPEG | RUN_SVG | RUN_PDF)
#define RUN_TREE_SINCE 8 /* of one that knows of that */
#define RUN_SHOW_SINCE 5 /* the WIRE_VERSION of a zygote that knows of RUN_SHOWN and RUN_MEMORY */

struct run_msg {
    uint32_t flags;
    const char *profile;
    struct limits limits;
    uint32_t nargs, nenv;
    const char *args[RUN_MAX_ARGS]; /* borrowed from the message */
    const char *env[RUN_MAX_ENV];
    const uint8_t *code;
    size_t code_len;
    int code_fd; /* owned, -1 unless RUN_CODE_FD */
};

void run_put(struct wire_out *o, enum wire_type type, const struct run_msg *r);
/* Reads all of it and checks that nothing is left over. */
int run_get(struct wire_in *i, struct run_msg *ret, struct err *e);

/* DONE_REFUSED: by the policy, before it began. */
enum done_how { DONE_RETURNED, DONE_EXIT, DONE_EXCEPTION, DONE_INTERRUPTED, DONE_REFUSED };
#define DONE_MAX_LINES  256
#define DONE_MAX_RESULT (16u << 20)
#define DONE_INLINE     16384 /* a longer result goes into a descriptor */

struct done_msg {
    enum done_how how;
    uint32_t exit_code;
    uint64_t cpu_us;          /* what the process says it used: the group's clock lags by a tick */
    const char *name, *value; /* of the exception; borrowed */
    uint32_t nlines;
    const char *lines[DONE_MAX_LINES];
    const void *result; /* borrowed */
    size_t result_len;
    int result_fd; /* -1: none; done_put borrows it, done_get gives it to the caller */
};

void done_put(struct wire_out *o, const struct done_msg *d);
int done_get(struct wire_in *i, struct done_msg *ret, struct err *e);
