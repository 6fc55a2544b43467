#pragma once
/* The dialect Sandbox Runtime: what its files share. A session is a live sandbox with the session's
 * id as its alias (aliases.h), made when it is first used. For this directory only. */

#include "api/files/file_call.h"
#include "api/jobs/aliases.h"

#define RUNTIME "sandbox-runtime"

struct fetcher;

extern const struct dialect runtime_dialect;

/* The dialect's state. */
struct runtime {
    struct fetcher *fetcher; /* owned: made when it is first needed; or NULL */
};

extern const struct route_table runtime_files_routes, runtime_read_routes, runtime_run_routes;
extern const struct route_table runtime_handler_routes, runtime_efast_routes;

/* The errors of a route that names a session. A session that is not there is made. */
#define ERRORS_OF_SESSION                                                                          \
    ERRORS_OF_START                                                                                \
    "too_many_sandboxes sandbox_gone sandbox_paused 400:bad_value 400:limit_too_high "
#define ERRORS_OF_SESSION_FILE ERRORS_OF_SESSION ERRORS_OF_PATH "400:bad_path not_a_file "

/* How errors are told, and how those of handlers are; the schemas of both. */
int runtime_tell(const struct call *c, const struct problem *p, struct buf *to);
extern const struct schema runtime_error_schema, runtime_lambda_error;
int runtime_tell_lambda(const struct call *c, const struct problem *p, struct buf *to);

/* ---- replies ---- */

/* Called first. False when the header X-Sandbox-Dialect asks for an unknown form; then the client
 * has its reply. */
bool runtime_enter(struct call *c);

/* 200 with the object: bare, or as the header X-Sandbox-Dialect or the configuration says. */
void runtime_reply(struct call *c, struct buf *json);       /* takes what it has */
void runtime_reply_rope(struct call *c, struct rope *json); /* likewise */
/* From a table of fields, the schema of such a reply: the object once, or twice. */
#define RUNTIME_REPLY(symbol, name_, array)                                                        \
    static const struct schema symbol##_bare = {SCHEMA(name_, array)};                             \
    static const struct field symbol##_both[] = {HAS("result", OBJECT(symbol##_bare)),             \
                                                 HAS("full_result", OBJECT(symbol##_bare))};       \
    static const struct schema symbol##_legacy = {SCHEMA(name_ "Legacy", symbol##_both)};          \
    static const struct schema symbol = {.name = name_ "Reply",                                    \
                                         ONE_OF(&symbol##_bare, &symbol##_legacy)}
/* Whether the reply is to have the legacy form, in which the object stands twice. runtime_wrap
 * writes it in that form, or bare. */
bool runtime_is_legacy(const struct call *c);
void runtime_wrap(bool legacy, const struct rope *json, struct rope *to);
void runtime_status_reply(struct call *c); /* {"status":"success"} */
/* {"detail": the text}. */
void runtime_error(struct call *c, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* FastAPI's 422 for a query parameter. */
void runtime_bad_query(struct call *c, const char *name, const char *type, const char *message);

/* ---- sessions ---- */

/* Processors of a handler or session, in percent; 0: the usual. */
/* Whether sessions and handlers get all of the network that is granted. */
bool runtime_allows_network(const struct config *cfg);
uint32_t runtime_cpus(const struct config *cfg);

/* `then` with the session that the path names, made if there is none; otherwise the client has its
 * reply. */
void runtime_use(struct call *c, alias_fn *then);

/* ---- files ---- */

/* The rule of Sandbox Runtime for paths; an absolute one begins at the session's directory. False
 * when the client has its reply. */
bool runtime_path_is_good(struct call *c, const char *path);
/* A call about files of a session, with the rules and errors of Sandbox Runtime for paths. */
void *runtime_file_call(struct call *c, const struct live *l, const char *path, size_t size,
                        void (*on_done)(struct file_call *fc));

/* Makes a file of these bytes (borrowed from the call's body), then calls `then`; the call's state
 * is free by then, and `path` is the clean one. */
struct runtime_file {
    const char *path, *data;
    size_t len;
    uint32_t mode;
    void (*then)(struct call *c, struct live *l, const char *path);
};
void runtime_write(struct call *c, const struct live *l, const struct runtime_file *f);

/* The regular files of a directory as {"filename","size","type"} objects with commas between. */
struct runtime_listing {
    const char *path;
    bool recursive;
    bool for_status; /* with the time of modification, and without what GET /files leaves out */
    void (*reply)(struct call *c, struct live *l, const struct rope *items);
};
void runtime_list(struct call *c, const struct live *l, const struct runtime_listing *how);
/* Such a list as the last member of the object that is open, and the reply. */
void runtime_reply_files(struct call *c, struct jw *j, const struct rope *items);
