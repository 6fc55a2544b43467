/* See clients.h. A connection sends C_INPUT messages, maybe C_NETWORK, and a C_RUN, gets C_STARTED,
 * C_OUTPUT…, C_FILE… and C_RESULT or C_ERROR, and may then run the next program. What it sends is
 * checked like anything from outside; a message that makes no sense ends the connection. A client
 * that does not read slows its own program down and nothing else: while answers wait for it and no
 * program of its runs, nothing more is read from it. */

#include "server/clients.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/oneshot/result.h"
#include "engine/oneshot/run.h"
#include "loop/acceptor.h"
#include "wire/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CLIENTS 1024
#define HIGH_WATER  (512u << 10) /* bytes waiting for a slow client */
#define INLINE_MAX  32768u
#define UNREAD_MAX  16 /* answers with a descriptor that lie in the socket unread */
#define SLICE       65536u

struct clients {
    struct engine *engine; /* borrowed */
    struct acceptor acceptor;
    unsigned n;
};

struct client {
    struct clients *all;
    struct chan chan;
    struct run *run; /* borrowed while it runs */
    struct input_file *inputs;
    unsigned ninputs;
    char *network;   /* owned: what the next program may reach; or NULL */
    unsigned unread; /* answers to C_INFO that it may not have read */
    struct deferred free_later;
};

static void free_inputs(struct client *c) {
    struct run_request q = {.code_fd = -1, .inputs = c->inputs, .ninputs = c->ninputs};
    run_request_done(&q);
    c->inputs = NULL;
    c->ninputs = 0;
    free(c->network);
    c->network = NULL;
}

static void free_now(struct deferred *d) {
    struct client *c = d->arg;
    free_inputs(c);
    free(c);
}

static void client_close(struct client *c) {
    if (c->chan.fd < 0)
        return;
    if (c->run)
        run_cancel(c->run);
    c->run = NULL;
    chan_done(&c->chan);
    c->all->n--;
    loop_defer(c->all->engine->loop, &c->free_later);
}

static const char *remedy(const char *kind) {
    static const struct {
        const char *kind, *text;
    } known[] = {
        {"unknown_profile", "choose one of the profiles, or leave the choice to auto"},
        {"profile_broken", "see the engine's log; choose another profile or repair this one"},
        {"limit_too_high", "ask for less, or raise the maximum in the engine's configuration"},
        {"network_rule_invalid", "see docs/network.md for what a rule may be"},
        {"network_not_allowed", "ask for less, or raise the setting network of the engine"},
        {"network_unavailable", "see the engine's log and `cloche doctor`"},
        {"queue_full", "try again later, or raise queue_max"},
        {"queue_timeout", "try again later, or allow more sandboxes (max_sandboxes)"},
        {"memory_budget", "try again later, or raise memory_budget_mb"},
        {"no_sandbox", "see the engine's log and `cloche doctor`"},
        {"sandbox_lost", "run it again"},
        {"disk_full", "give the sandbox more disk (--disk), or fewer files"},
        {"bad_path", "use a relative path without \"..\" that is not taken"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(kind, known[i].kind) == 0)
            return known[i].text;
    }
    return "see the engine's log";
}

static void send_error(struct client *c, const struct err *why) {
    static const char *const again[] = {"queue_full", "queue_timeout", "memory_budget",
                                        "no_sandbox", "sandbox_lost",  "network_unavailable"};
    const char *kind = *why->kind ? why->kind : "internal";
    uint32_t retryable = 0;
    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        retryable |= strcmp(kind, again[i]) == 0;
    struct wire_out o;
    c_error_put(&o, &(struct c_error){retryable, kind, why->text, remedy(kind)});
    chan_send(&c->chan, &o);
}

/* ---- from the run ---- */

static void served_on_start(void *arg, struct run *r) {
    struct client *c = arg;
    struct wire_out o;
    c_started_put(&o, &(struct c_started){.id = run_id(r)});
    chan_send(&c->chan, &o);
}

static void served_on_output(void *arg, int stream, const void *data, size_t len) {
    struct client *c = arg;
    struct wire_out o;
    c_output_put(&o, &(struct c_output){.stream = (uint32_t)stream, .data = {data, len}});
    chan_send(&c->chan, &o);
    if (c->run && c->chan.queued > HIGH_WATER)
        run_hold(c->run, true);
}

static void on_stdin(void *arg, size_t taken) {
    struct client *c = arg;
    struct wire_out o;
    if (!taken)
        return;
    c_want_put(&o, &(struct c_want){.bytes = (uint32_t)taken});
    chan_send(&c->chan, &o);
}

static bool served_on_file(void *arg, const char *path, uint64_t size, int *fd) {
    struct client *c = arg;
    struct wire_out o;
    c_file_put(&o, &(struct c_file){.path = path, .size = size, .file = *fd});
    chan_send(&c->chan, &o);
    return false;
}

/* The beginning, and the rest of it slice by slice: all at once may be six times what it is made
 * of. */
static int memfd_of_rope(struct buf *begin, struct rope *rest, int *ret_fd, struct err *e) {
    AUTO_FD fd = memfd_create("result", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_sys(e, "memfd_create");
    bool more = true;
    do {
        if (fd_write_all(fd, begin->data, begin->len, e) < 0)
            return -1;
        buf_clear(begin);
        more = rest->n > 0;
        rope_read(rest, SLICE, begin);
    } while (more);
    if (memfd_seal(fd, e) < 0)
        return -1;
    *ret_fd = fd_take(&fd);
    return 0;
}

static void send_result(struct client *c, struct run *r) {
    AUTO_ROPE result = ROPE_INIT;
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF notes = BUF_INIT;
    struct err e;
    run_result(r, &(struct result_options){0}, &result);
    run_notes(r, &notes);
    AUTO_FD fd = -1;
    if (rope_read(&result, INLINE_MAX, &json) && memfd_of_rope(&json, &result, &fd, &e) < 0) {
        send_error(c, &e);
        return;
    }
    struct wire_out o;
    c_result_put(&o, &(struct c_result){.status = (uint32_t)run_exit_status(r),
                                        .why = notes.data,
                                        .json = {json.data, fd < 0 ? json.len : 0},
                                        .file = fd});
    chan_send(&c->chan, &o);
}

/* What waits holds memory and descriptors: a client gets the next answer when it took the last. */
static void wait_for_reader(struct client *c) {
    if (c->chan.fd >= 0 && !c->run && c->chan.head)
        chan_pause(&c->chan);
}

static void on_done(void *arg, struct run *r, const struct err *why) {
    struct client *c = arg;
    c->run = NULL;
    if (why)
        send_error(c, why);
    else
        send_result(c, r);
    wait_for_reader(c);
}

static void on_drain(struct chan *chan) {
    struct client *c = chan->arg;
    chan_resume(chan);
    if (c->run)
        run_hold(c->run, false);
}

/* ---- from the client ---- */

/* A descriptor from outside is read like a file only if it is one: anything else could block us. */
static bool is_file(int fd) {
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_WRONLY && !(flags & O_PATH) &&
           fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool do_input(struct client *c, struct wire_in *in) {
    struct c_input m;
    struct err e;
    if (c_input_get(in, &m, &e) < 0 || !is_file(m.file) || c->ninputs == RUN_MAX_FILES || c->run)
        return false;
    c->inputs = xrealloc(c->inputs, (c->ninputs + 1) * sizeof *c->inputs);
    c->inputs[c->ninputs++] =
        (struct input_file){.path = xstrdup(m.path), .mode = m.mode, .fd = wire_keep(in, m.file)};
    return true;
}

static bool do_network(struct client *c, struct wire_in *in) {
    struct c_network m;
    struct err e;
    if (c_network_get(in, &m, &e) < 0 || c->network || c->run)
        return false;
    c->network = xstrdup(m.rules);
    return true;
}

/* -1: the client knows why. */
static int read_network(struct client *c, struct network_terms **ret) {
    struct err e;
    *ret = NULL;
    if (!c->network)
        return 0;
    AUTO_FREE char *text = c->network;
    c->network = NULL;
    struct network_terms *t = network_terms_parse(c->all->engine->network, text, NULL, &e);
    if (!t) {
        send_error(c, &e);
        return -1;
    }
    if (t->is_none)
        network_terms_free(t);
    else
        *ret = t;
    return 0;
}

static char **copy_strings(const char *const *items, uint32_t n) {
    char **copy = xcalloc(n, sizeof *copy);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = xstrdup(items[i]);
    return copy;
}

static bool do_run(struct client *c, struct wire_in *in) {
    struct run_msg m;
    struct err e;
    struct network_terms *network;
    if (c->run || run_get(in, &m, &e) < 0)
        return false;
    if (read_network(c, &network) < 0) {
        fd_close(&m.code_fd);
        free_inputs(c);
        return true;
    }
    struct run_request q = {
        .flags = m.flags,
        .profile = xstrdup(m.profile),
        .limits = m.limits,
        .args = copy_strings(m.args, m.nargs),
        .nargs = m.nargs,
        .env = copy_strings(m.env, m.nenv),
        .nenv = m.nenv,
        .code_fd = m.code_fd,
        .code = xmalloc(m.code_len),
        .code_len = m.code_len,
        .network = network,
        .inputs = c->inputs,
        .ninputs = c->ninputs,
    };
    if (m.code_len)
        memcpy(q.code, m.code, m.code_len);
    c->inputs = NULL;
    c->ninputs = 0;
    struct stat st;
    bool good = q.code_fd < 0 || (is_file(q.code_fd) && fstat(q.code_fd, &st) == 0);
    if (good && q.code_fd >= 0 && st.st_size > RUN_MAX_CODE) {
        err_user(&e, "code_too_long", "the program has %lld bytes; the most is %u",
                 (long long)st.st_size, RUN_MAX_CODE);
        send_error(c, &e);
        run_request_done(&q);
        return true;
    }
    const struct run_callbacks cb = {.arg = c,
                                     .on_start = served_on_start,
                                     .on_output = served_on_output,
                                     .on_stdin = on_stdin,
                                     .on_file = served_on_file,
                                     .on_done = on_done};
    if (good && run_new(c->all->engine, &q, &cb, &c->run, &e) < 0)
        send_error(c, &e);
    run_request_done(&q); /* empty when it was taken */
    return good;
}

static bool do_stdin(struct client *c, struct wire_in *in) {
    struct c_stdin m;
    struct err e;
    if (c_stdin_get(in, &m, &e) < 0)
        return false;
    if (c->run && run_stdin_backlog(c->run) + m.data.len > RUN_STDIN_WINDOW)
        return false;
    if (c->run)
        run_stdin(c->run, m.data.data, m.data.len);
    return true;
}

static bool do_signal(struct client *c, struct wire_in *in) {
    struct err e;
    struct c_signal m;
    if (c_signal_get(in, &m, &e) < 0 || m.signal == 0)
        return false;
    if (c->run)
        run_signal(c->run, (int)m.signal);
    return true;
}

/* SECURITY: descriptors that lie in a socket count for the user who sent them, and the server needs
 * to send others. */
static bool reads_answers(struct client *c) {
    int unread = 0;
    if (ioctl(c->chan.fd, TIOCOUTQ, &unread) == 0 && unread == 0)
        c->unread = 0;
    return ++c->unread <= UNREAD_MAX;
}

static bool do_info(struct client *c, struct wire_in *in) {
    AUTO_BUF json = BUF_INIT;
    AUTO_FD fd = -1;
    struct wire_out o;
    struct err e;
    if (!reads_answers(c))
        return false;
    about_json(c->all->engine, &json);
    if (wire_get_nothing(in, &e) < 0 || memfd_of("state", json.data, json.len, &fd, &e) < 0)
        return false;
    c_state_put(&o, &(struct c_state){.json = fd});
    chan_send(&c->chan, &o);
    return true;
}

static const struct {
    enum wire_type type;
    bool (*fn)(struct client *, struct wire_in *);
} requests[] = {
    {WIRE_C_INPUT, do_input},   {WIRE_C_RUN, do_run},   {WIRE_C_STDIN, do_stdin},
    {WIRE_C_SIGNAL, do_signal}, {WIRE_C_INFO, do_info}, {WIRE_C_NETWORK, do_network},
};

static void on_msg(struct chan *chan, struct wire_in *in) {
    struct client *c = chan->arg;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].type == in->type && requests[i].fn(c, in)) {
            wait_for_reader(c);
            return;
        }
    }
    log_warn("client sent what makes no sense message=%s", wire_type_name(in->type));
    client_close(c);
}

/* In our own version: whoever cannot read that says so itself. */
static void tell_version(const struct client *c, const struct err *why) {
    struct wire_out o;
    struct err e;
    log_warn("client of another version error=%s", log_text(why->text));
    c_error_put(&o, &(struct c_error){.kind = "other_version",
                                      .message = why->text,
                                      .remedy = "use the cloche that the engine was started with, "
                                                "or restart the engine"});
    wire_send(c->chan.fd, &o, &e);
}

static void on_gone(struct chan *chan, const struct err *why) {
    if (why->code == EPROTONOSUPPORT)
        tell_version(chan->arg, why);
    client_close(chan->arg);
}

static void on_connect(struct acceptor *a) {
    struct clients *all = a->arg;
    struct err e;
    AUTO_FD fd = acceptor_next(a, NULL, NULL);
    if (fd < 0 || all->n >= MAX_CLIENTS)
        return;
    struct client *c = xcalloc(1, sizeof *c);
    c->all = all;
    c->free_later = (struct deferred){.fn = free_now, .arg = c};
    c->chan = (struct chan){
        .fd = -1, .on_msg = on_msg, .on_gone = on_gone, .on_drain = on_drain, .arg = c};
    if (chan_init(&c->chan, all->engine->loop, &fd, &e) < 0) {
        free(c);
        return;
    }
    all->n++;
}

int clients_new(struct engine *g, int listen_fd, struct clients **ret, struct err *e) {
    struct clients *all = xcalloc(1, sizeof *all);
    all->engine = g;
    all->acceptor = (struct acceptor){.fn = on_connect, .arg = all};
    *ret = all;
    return acceptor_start(&all->acceptor, g->loop, listen_fd, e);
}
