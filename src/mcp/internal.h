#pragma once
/* The inside of the server half; for this directory only. */

#include "base/err.h"
#include "base/id.h"
#include "loop/crew.h"
#include "loop/loop.h"
#include "mcp/call.h"
#include "mcp/content.h"
#include "mcp/era.h"
#include "mcp/rpc.h"
#include "mcp/server.h"
#include "mcp/uri.h"

struct http_req;
struct listener;
struct session;
struct stream;

struct mcp {
    struct mcp_host host;
    json_t **schemas; /* owned: what tools take as JSON (`takes_json`), in their order; or NULLs */
    struct mcp_call *calls;
    struct stream *streams;   /* oldest first */
    size_t stream_bytes;      /* of events that are kept */
    struct session *sessions; /* what is remembered of some; newest first */
    struct listener *listeners;
    unsigned nlisteners;
};

/* One HTTP request. */
struct visit {
    struct mcp *m;
    struct http_req *req;      /* borrowed; NULL: the client has left */
    struct mcp_asker *who;     /* a reference */
    struct stream *stream;     /* borrowed: what this request shows; or NULL */
    struct listener *listener; /* borrowed: the same */
    bool is_over;              /* the host has said so */
    bool is_modern;
    const char *version; /* a constant */
    unsigned can;        /* of a legacy client with a session */
    /* the body, while it is read */
    struct work work;
    struct buf body;
    size_t length; /* of the body */
    json_t *tree;  /* owned */
    struct err why;
    bool is_reading;
};

enum call_kind {
    CALL_SIMPLE, /* answered by the protocol itself */
    CALL_TOOL,
    CALL_READ,
    CALL_PROMPT,
    CALL_COMPLETE,
    CALL_LIST, /* of resources */
};

/* What a handler asked the client. */
struct asking {
    struct timer late;
    struct json_t *wanted;  /* owned: method and params by key; NULL: nothing is asked */
    struct json_t *answers; /* owned: results by key */
    char nonce[ID_MAX];     /* names this set of questions */
    mcp_answered *fn;
    mcp_told *told; /* of mcp_ask_text */
    bool is_parked; /* modern: until the client comes back */
};

struct progress {
    struct timer tick;
    json_t *token; /* owned; or NULL: the client wants none */
    uint64_t began_ns, told_ns;
    struct buf tail; /* the last of what was printed */
    bool said, by_handler;
};

struct mcp_call {
    struct mcp_call *next;
    struct mcp *m;
    enum call_kind kind;
    struct stream *to;     /* borrowed; NULL: nobody hears the answer */
    struct mcp_asker *who; /* a reference */
    json_t *message;       /* owned */
    size_t length;         /* of the body that it came in */
    json_t *id, *params;   /* of the message */
    json_t *args;          /* owned: an object */
    bool is_modern, is_cancelled;
    const char *version;
    unsigned can;
    int log_level; /* the least that is sent; -1: none */
    const struct mcp_tool *tool;
    const struct mcp_prompt *prompt;
    const struct mcp_template *template; /* of a resource; or NULL */
    struct uri_match match;
    unsigned listing; /* which template is being listed */
    void *state;
    void (*state_done)(void *state);
    mcp_handler *on_cancel;
    struct progress progress;
    struct asking asking;
    /* the answer */
    struct content content;
    struct buf structured, meta; /* JSON; members */
    struct buf items;            /* inside of an array: contents, values, resources */
    unsigned nitems;
};

/* ---- askers ---- */
struct mcp_asker *asker_ref(struct mcp_asker *who);
void asker_unref(struct mcp_asker *who);

/* ---- calls (call.c) ---- */
/* For a request that came; its message is in *tree, of which it takes a reference. */
struct mcp_call *call_new(struct visit *v, struct stream *to, json_t *message, const struct rpc *r);
/* The result: the inside of its object. The call is gone. */
void call_result(struct mcp_call *c, const struct buf *members);
/* The same for one with hints for caches, in the modern era. */
void call_cacheable(struct mcp_call *c, struct buf *members, unsigned ttl_ms, bool is_public);
/* An error with that status, where that can still be said. The call is gone. */
void call_error(struct mcp_call *c, int status, int code, const char *message, const char *data);
/* It never was one: nothing is said. */
void call_drop(struct mcp_call *c);
/* The client wants no answer. */
void call_cancel(struct mcp_call *c);
/* Its client has left. */
void call_alone(struct mcp_call *c);
void call_send(struct mcp_call *c, const struct buf *message);
int call_level(const char *name); /* of a log: higher is worse; -1: no level */
bool call_is(const struct mcp_call *c, const struct mcp_asker *who, const json_t *id);
/* The answer when all of it is there: by kind. */
void call_finish(struct mcp_call *c, bool is_error);

/* ---- progress (progress.c) ---- */
void progress_begin(struct mcp_call *c);
void progress_end(struct mcp_call *c);

/* ---- questions (ask.c) ---- */
/* A client's response to one of them. */
void ask_response(struct visit *v, const struct rpc *r);
/* Whether the request goes on with a call that waits for it: then all is done. */
bool ask_resumed(struct mcp_call *c);
void ask_end(struct mcp_call *c);

/* ---- methods (methods.c) ---- */
/* The answer to a request of this visit. */
void method_call(struct mcp_call *c, struct visit *v, const char *method);
void method_notify(struct visit *v, const struct rpc *r);

/* ---- lists (list.c) ---- */
void list_tools(struct mcp_call *c);
void list_resources(struct mcp_call *c);
void list_resources_more(struct mcp_call *c);
void list_templates(struct mcp_call *c);
void list_prompts(struct mcp_call *c);
bool list_offers(const struct mcp_tool *t, const struct mcp_asker *who);
void list_put_server(const struct mcp *m, struct jw *j);
void list_put_capabilities(const struct mcp *m, struct jw *j, bool modern);
