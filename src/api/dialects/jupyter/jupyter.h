#pragma once
/* Jupyter's kernels over live sandboxes. A hub is a kernel as Jupyter knows it: its clients, what
 * runs and waits in it, what they missed. It is there as soon as somebody asks for the kernel, and
 * goes with it; all that must outlive the server is in the kernel's label. For api/ only. */

#include "api/core/call.h"
#include "api/core/inbox.h"
#include "api/core/shares.h"
#include "api/dialects/jupyter/frame.h"
#include "api/jobs/records.h"
#include "engine/live/live.h"
#include "loop/share.h"

#define JUPYTER_UUID    37 /* of a kernel: the digits of its own id, with dashes */
#define JUPYTER_SESSION 65 /* of a client, in bytes with the NUL */
#define JUPYTER_VERSION "5.3"
#define JUPYTER_DIALECT "jupyter"

#define JUPYTER_POSTING_NS 1500000u /* of a turn of the loop, for all hubs */

struct ws;
struct cell_job;
struct jupyter_hub;
struct jupyter_telling;

extern const struct dialect jupyter_dialect;
extern const struct route_table jupyter_routes, jupyter_about_routes, jupyter_channels_routes,
    jupyter_sessions_routes;

/* The dialect's state. */
struct jupyter {
    struct jupyter_hub *hubs;  /* owned: of kernels that somebody asked for */
    struct loop_share posting; /* of messages to their clients */
    struct shares away;        /* hubs, by what they keep for clients that are away */
};

struct jupyter_client {
    struct jupyter_client *next;
    struct jupyter_hub *hub; /* borrowed; NULL: the kernel is gone */
    struct call *call;       /* borrowed: its owner */
    struct ws *ws;           /* borrowed: lives as long as the call */
    char session[JUPYTER_SESSION];
    bool v1;
    bool waits; /* not heard before less is on its way */
    struct inbox in;
};

/* Messages on their way to a hub's clients, in their order. */
struct jupyter_post {
    struct jupyter_out *first, **end; /* owned */
    size_t n, bytes;
    struct jupyter_client *at; /* who gets the first of them next, if that is for all */
    bool is_full, is_busy;
    struct loop_sharer turn;
};

/* What a client asked for. */
struct jupyter_request {
    struct jupyter_request *next;
    struct jupyter_hub *hub;
    struct jupyter_client *client; /* borrowed; NULL: gone */
    char session[JUPYTER_SESSION];
    const char *channel, *reply; /* constants: where to answer, and with what; or NULL: not */
    char *parent;                /* owned: its header, as JSON */
    /* of those that run in the kernel */
    struct caller who;    /* whose it is, also when the call is gone */
    json_t *body;         /* owned: as of an execution of ours */
    struct buf extra;     /* see cell_request; until it runs */
    struct buf shown;     /* the code, as the inside of a JSON string; until it runs */
    uint8_t sha256[32];   /* of the code */
    const char *op;       /* a constant, or NULL */
    bool silent, goes_on; /* an error does not end those that wait */
    struct buf payloads;  /* the inside of an array */
    char *expressions;    /* owned: JSON; or NULL */
    char *error;          /* owned: a JSON object; or NULL */
    /* of questions */
    struct jupyter_telling *telling; /* borrowed: its answer is being read; or NULL */
};

struct jupyter_hub {
    struct share_item away; /* among the tenant's */
    struct jupyter_hub *next;
    struct api *api;
    char tenant[65], sandbox[ID_MAX], kernel[ID_MAX], uuid[JUPYTER_UUID];
    char session[ID_MAX]; /* of the kernel's side, in headers */
    uint64_t last_message;
    struct kernel_watcher watcher;
    json_t *label;             /* owned: the kernel's */
    struct blob *session_json; /* owned: its session, but for the kernel; NULL: it has none, */
    size_t session_gap;        /* and where that belongs */
    struct jupyter_client *clients;
    bool holds;    /* the sandbox: somebody is connected */
    bool gone;     /* the kernel is */
    bool expected; /* that the process dies: somebody restarts it */
    double last_activity;
    /* what runs, and what waits for its turn */
    struct jupyter_request *running, *queue, **queue_end;
    unsigned nqueued;
    size_t queued_bytes;
    struct cell_job *job; /* borrowed while it runs */
    struct follower follower;
    struct buf printed;     /* by it, the inside of a JSON string; not said yet */
    const char *printed_to; /* a constant: which stream */
    struct timer say_later;
    struct jupyter_request *asked; /* questions under way */
    /* what the last client that left has not seen */
    bool keeps;
    char kept_for[JUPYTER_SESSION];
    struct jupyter_out *kept, **kept_end;
    size_t kept_bytes;
    struct timer cull;
    struct deferred later;
    struct jupyter_post post;
};

/* ---- hub.c ---- */
double jupyter_now(void);
/* "2026-01-31T23:59:59.123456Z" */
void jupyter_date(char *to, size_t cap, double when);
void jupyter_uuid(const char *kernel_id, char to[JUPYTER_UUID]);
/* All that an earlier server kept: from now on they are culled. */
void jupyter_adopt(struct api *a);
/* The hub of one of Jupyter's kernels; by its uuid of those that the call may mean, or NULL. */
struct jupyter_hub *jupyter_hub(struct api *a, struct kernel *k);
struct jupyter_hub *jupyter_find(const struct call *c, const char *uuid);
/* NULL when it is gone. */
struct kernel *jupyter_kernel(struct jupyter_hub *h);
/* What a client said, or the kernel answered, took us so long: the sandbox pays. */
void jupyter_heard(struct jupyter_hub *h, uint64_t cpu_ns);
void jupyter_join(struct jupyter_hub *h, struct jupyter_client *c);
void jupyter_leave(struct jupyter_client *c);
/* A fresh process; `fn` when it is there. */
void jupyter_restart(struct jupyter_hub *h, kernel_ready_fn *fn, void *arg);
/* The kernel, and its sandbox if that is its own. */
void jupyter_end(struct jupyter_hub *h);

/* A message on its way; `parent` is JSON. Its content is written by the caller. */
struct jupyter_out *jupyter_out(struct jupyter_hub *h, const char *channel, const char *type,
                                const char *parent);
/* To all, or to the one who asked. Takes the message. */
void jupyter_publish(struct jupyter_hub *h, struct jupyter_out *m);
void jupyter_answer(struct jupyter_request *r, struct jupyter_out *m);
/* The same with the content as text. */
void jupyter_say(struct jupyter_hub *h, const char *type, const char *parent, const char *content);
void jupyter_reply(struct jupyter_request *r, const char *content);
void jupyter_state(struct jupyter_hub *h, const char *parent, const char *state);

/* Takes the message: it waits for the session that left last. */
void jupyter_keep(struct jupyter_hub *h, struct jupyter_out *m);

/* ---- label.c ---- */
/* The hub's, of what its kernel has; or NULL where there is none. */
void jupyter_label_read(struct jupyter_hub *h);
void jupyter_label_done(struct jupyter_hub *h);
const char *jupyter_spec(const struct jupyter_hub *h);
const char *jupyter_session_text(const struct jupyter_hub *h, const char *member);
/* The kernel's, from now on and over a restart of the server too. */
void jupyter_label_new(struct jupyter_hub *h, const char *spec);
/* Takes it; NULL: none. */
void jupyter_set_session(struct jupyter_hub *h, json_t *session);

/* ---- post.c ---- */
void jupyter_post_init(struct jupyter_hub *h);
void jupyter_post_done(struct jupyter_hub *h);
/* To the one it is for, or to all; now, or in one of the next turns. Takes the message. */
void jupyter_post(struct jupyter_hub *h, struct jupyter_out *m);
/* So much is on its way that nobody should say more. */
bool jupyter_post_is_full(const struct jupyter_hub *h);
/* The client is none of the hub's any more. */
void jupyter_post_leave(struct jupyter_hub *h, struct jupyter_client *c);
/* The kernel is gone: clients are closed when they have what was on its way to them; after the last
 * the hub is called later. */
void jupyter_post_end(struct jupyter_hub *h);
bool jupyter_post_is_over(const struct jupyter_hub *h);

/* ---- run.c ---- */
/* Takes what was made of the message for the kernel. */
struct jupyter_request *jupyter_request(struct jupyter_client *c, struct jupyter_in *m,
                                        const char *reply);
void jupyter_request_free(struct jupyter_request *r);
/* Takes the request. */
void jupyter_run(struct jupyter_request *r);
/* All that waits, when the kernel is to be a fresh one. */
void jupyter_abort(struct jupyter_hub *h);
void jupyter_go_on(struct jupyter_hub *h);
/* Frees what runs and waits. */
void jupyter_run_done(struct jupyter_hub *h);
/* An execution that an earlier server began. */
bool jupyter_inherit(struct api *a, struct live *l, struct cell *c, struct cell_job *job);

/* Comms have no reply. */
static inline bool jupyter_is_cell(const struct jupyter_request *r) {
    return r->reply != NULL;
}
/* The end of what runs: its reply, and the next. */
void jupyter_over(struct jupyter_hub *h, uint64_t count);

/* ---- events.c ---- */
void jupyter_events_init(struct jupyter_hub *h);
void jupyter_events_done(struct jupyter_hub *h); /* no more is told */
/* What runs says what it does in that record. */
void jupyter_follow(struct jupyter_hub *h, struct record *rec);
/* It ends without having run, or without a result. */
void jupyter_fail(struct jupyter_request *r, const char *code, const char *why);
/* The one who runs something reads again, or is gone. */
void jupyter_unhold(struct jupyter_hub *h);

/* ---- messages.c ---- */
/* Right after jupyter_read: all that takes long with a message; may be called beside the loop. -1
 * with kind "bad_message". */
int jupyter_prepare(struct jupyter_in *m, struct err *e);
void jupyter_hear(struct jupyter_client *c, struct jupyter_in *m);
void jupyter_complain(struct jupyter_client *c, const struct err *why);
/* {"language_info":…} and its fellows. */
void jupyter_kernel_info(struct jupyter_hub *h, struct buf *to);

/* ---- questions.c ---- */
void jupyter_prepare_question(struct jupyter_in *m);
void jupyter_ask(struct jupyter_client *c, struct jupyter_in *m);
/* Nobody waits for the answer any more. */
void jupyter_untell(struct jupyter_request *r);

/* ---- jupyter.c ---- */
extern const struct schema jupyter_model_schema;
void jupyter_model(struct jupyter_hub *h, struct jw *j);
/* The tenant's by its uuid; NULL: the client has its reply. */
struct jupyter_hub *jupyter_named(struct call *c, const char *uuid);
/* All of the tenant's; at a sandbox's own port, of that one. */
void jupyter_each(struct call *c, void (*fn)(void *arg, struct jupyter_hub *h), void *arg);
/* A new kernel of that kernelspec (NULL: the default one); replies as the route wants it. */
void jupyter_make(struct call *c, const char *name);

/* ---- env.c ---- */
/* Makes the body's `env` that of a kernel; -1: *p says why not. */
int jupyter_set_env(struct call *c, struct problem *p);

/* ---- sessions.c ---- */
/* There is a kernel for the call's session: replies. */
void jupyter_session_made(struct call *c, struct jupyter_hub *h);
/* Whether the call is about a session, and not about a kernel alone. */
bool jupyter_is_session(const struct call *c);
