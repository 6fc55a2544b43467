#pragma once
/* One program, from request to result.
 *
 * A caller makes a struct run_request, hands it to run_new with its callbacks, and gets on_output
 * as the program writes and on_done exactly once. run_cancel may come any time before that. */

#include "base/buf.h"
#include "config/config.h"
#include "engine/core/stage.h"
#include "wire/run.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct json_t;
struct run;
struct tree;

struct run_request {
    uint32_t flags;       /* enum run_flag */
    char *tenant;         /* owned: who takes turns with others; NULL is a tenant, too */
    char *profile;        /* owned: a name, or auto */
    struct limits limits; /* 0: the default; run_new fills them in */
    char **args, **env;   /* owned */
    unsigned nargs, nenv;
    int code_fd; /* owned: -1 when the code is in `code` */
    uint8_t *code;
    size_t code_len;
    struct input_file *inputs;
    unsigned ninputs;
    struct network_terms *network; /* owned: what it may reach; NULL: nothing */
    struct tree *tree;             /* used: of its tenant's profile; run_new finds it */
    uint64_t files_bytes;          /* of the inputs; run_new fills it in */
    bool own_bounds; /* its time and memory were held against other maxima than the engine's */
    bool unbound;    /* it is ours: no limit of it is held against any */
};
void run_request_done(struct run_request *q);

struct run_callbacks {
    void *arg;
    void (*on_start)(void *arg, struct run *r);
    void (*on_output)(void *arg, int stream, const void *data, size_t len);
    /* Or NULL. It shows something (RUN_SHOWN): result, display; or waits for its stdin (RUN_ASKS):
     * input. `json` is an object. */
    void (*on_event)(void *arg, const char *type, const struct buf *json);
    /* The program took so much of its stdin (RUN_STDIN); 0: it reads no more, the rest is dropped.
     */
    void (*on_stdin)(void *arg, size_t taken);
    /* A file that was made or changed (RUN_FILES), of which so many bytes count; the descriptor may
     * be taken. True: it takes time, and run_next_file is called when it is through. */
    bool (*on_file)(void *arg, const char *path, uint64_t size, int *fd);
    /* Once. `why` is NULL when there is a result (result.h). The run is freed after it. */
    void (*on_done)(void *arg, struct run *r, const struct err *why);
};

/* Checks the request and queues it; takes its contents. On failure nothing was taken. */
int run_new(struct engine *g, struct run_request *q, const struct run_callbacks *cb,
            struct run **ret, struct err *e);
const char *run_id(const struct run *r);
/* The one who asked is gone: no more callbacks. */
void run_cancel(struct run *r);
/* More for the program's stdin; len 0 is its end. */
void run_stdin(struct run *r, const void *data, size_t len);
/* The same with a text that need not be copied: a reference is taken. Before any other. */
void run_stdin_text(struct run *r, struct json_t *text);
size_t run_stdin_backlog(const struct run *r);
void run_signal(struct run *r, int sig);
void run_next_file(struct run *r); /* see on_file */
/* The consumer of the output is slow: stop, or go on, reading from the program. */
void run_hold(struct run *r, bool hold);
