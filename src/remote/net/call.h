#pragma once
/* Requests to a cloche server, over libcurl: one at a time, on one connection that is kept. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct client_outcome;
struct json_t;
struct remote;

/* URL: http://HOST:PORT, https://HOST, each perhaps with a path in front of ours, or unix:PATH. The
 * key is the first line of the file, or CLOCHE_API_KEY, or none. `signals` is borrowed: a signalfd,
 * or -1. */
int remote_open(const char *url, const char *key_file, int signals, struct remote **ret,
                struct err *e);
void remote_free(struct remote *r);
#define AUTO_REMOTE __attribute__((cleanup(remote_cleanup))) struct remote *
static inline void remote_cleanup(struct remote **r) {
    remote_free(*r);
}

/* Where the body of a 2xx goes when it is not to be kept. */
struct remote_sink {
    void *arg;
    /* False: not now; it comes again once wait_fd says -1. */
    bool (*take)(void *arg, const char *data, size_t len);
    /* The sink has what it wanted or wants no more: the connection is closed. */
    bool (*is_over)(void *arg);
    /* All below may be NULL. A descriptor that must take output before more can be taken, or -1. */
    int (*wait_fd)(void *arg);
    /* It can. -1 ends the transfer. */
    int (*on_ready)(void *arg, struct err *e);
    /* A descriptor from which it wants to read, or -1; it can be read. */
    int (*input_fd)(void *arg);
    int (*on_input)(void *arg, struct err *e);
    /* False: the transfer ends. */
    bool (*on_signal)(void *arg, int signal);
};

/* Told from time to time how far a long transfer is; the total is 0 while nobody knows it. */
struct remote_watch {
    void *arg;
    void (*moved)(void *arg, uint64_t done, uint64_t total);
};

/* SECURITY: a server may send without end. Most answers are small; one that holds what a program
 * printed has up to six bytes for each byte of it. */
#define REMOTE_ANSWER_MAX (16u << 20)
#define REMOTE_RESULT_MAX (256u << 20)

struct remote_call {
    const char *method, *path;
    const char *header;               /* one more, or NULL */
    const struct buf *json;           /* a body, or NULL */
    int upload;                       /* a file to send, or -1 */
    const char *upload_name;          /* in a form; NULL: the file is the body */
    const char *upload_type;          /* its media type then, or NULL */
    const struct remote_watch *watch; /* or NULL */
    const struct remote_sink *sink;   /* or NULL: the body is kept */
    size_t most;                      /* bytes of a body that is kept; 0: REMOTE_ANSWER_MAX */
    long within_s;                    /* all of it; 0: as long as it takes */
    bool gives_signs;                 /* of life: a long silence means that the server is gone */
};

struct remote_reply {
    int status;      /* of HTTP; 0 when a signal came first or the sink was over */
    int signal;      /* that came, or 0 */
    bool has_etag;   /* what files have and answers have not */
    struct buf body; /* what no sink took */
};
#define REMOTE_REPLY_INIT                                                                          \
    { .body = BUF_INIT }
#define AUTO_REPLY __attribute__((cleanup(remote_reply_done))) struct remote_reply

/* -1 when there was no whole answer: kinds no_server, bad_certificate, engine_gone. */
int remote_do(struct remote *r, const struct remote_call *c, struct remote_reply *ret,
              struct err *e);
void remote_reply_done(struct remote_reply *r);

/* What a reply other than 2xx says, as an outcome of end CLIENT_REFUSED. */
void remote_refused(const struct remote_reply *reply, struct client_outcome *ret);
/* The same for an error object {code, message, remediation, retryable}. */
void remote_error(const struct json_t *error, struct client_outcome *ret);
