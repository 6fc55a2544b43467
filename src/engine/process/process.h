#pragma once
/* A process in a live sandbox, which a kernel or a command stands on. For process/,
 * kernel/ and live/ only. */

#include "config/config.h"
#include "engine/core/cgroup_fds.h"
#include "engine/core/denials.h"
#include "wire/chan.h"
#include "wire/codec.h"

struct live;

enum process_state {
    PROCESS_NONE,
    PROCESS_ASKED,    /* of the warden */
    PROCESS_EXPECTED, /* of an earlier server: the warden gives it */
    PROCESS_STARTING, /* enters the sandbox */
    PROCESS_READY,    /* said so; from here on it is its owner's */
    PROCESS_STATES_
};

struct process_kind {
    void (*on_ready)(void *owner);   /* it waits to be told what to be */
    void (*on_resumed)(void *owner); /* or this: it goes on, from an earlier server */
    void (*on_frame)(void *owner, struct wire_in *in);
    void (*on_hung_up)(void *owner); /* it closed its control socket; or NULL */
    bool (*is_heard)(void *owner);   /* what it said is still being read; or NULL */
    /* What it says is not to be read for now, or again, and what it prints (see pace.c); or NULL.
     */
    void (*hear)(void *owner, bool on);
    void (*read)(void *owner, bool on);
    void (*on_dying)(void *owner); /* it is dead: what do its descriptors hold? or NULL */
    /* Where to note what it was refused; NULL: nobody is told. */
    struct denials *(*denied)(void *owner);
    /* Once, after that. `why` when it could not be made; else the wait status. */
    void (*on_end)(void *owner, int status, const char *why);
};

struct process {
    struct process *next; /* of its sandbox's */
    struct live *live;    /* borrowed */
    const struct process_kind *kind;
    void *owner;
    enum process_state state;
    bool doomed;     /* to be killed as soon as that is possible */
    bool has_exited; /* with `status`; its end waits for what it said before, */
    int status;
    unsigned last_words;       /* so many messages at the most, */
    struct loop_sharer ending; /* and for its turn */
    char why[200];             /* it said why it cannot be */
    uint32_t number;
    struct limits limits;     /* its own; memory_mb 0: it has none */
    struct cgroup_fds cgroup; /* owned: of its own control group, if it has one */
    struct cgroup_usage last; /* what that told in the end */
    bool was_own;             /* `last` holds it */
    uint64_t heard_ns;        /* see pace.c */
    struct chan *ctl, own;    /* the sandbox's for number 0, else our own */
    int fds[3];               /* owned: its stdin, stdout, stderr */
    struct timer deadline;
};

/* Asks for one; the kind and the owner are set. */
void process_start(struct process *p, struct live *l);
/* The one that came with the sandbox, and is ready. */
void process_take_first(struct process *p, struct live *l);
void process_signal(struct process *p, int sig, enum signal_scope scope);
/* The request for it, for whoever wants to hear that it has arrived. */
void process_signal_message(const struct process *p, int sig, enum signal_scope scope,
                            struct wire_out *ret);
/* One that an earlier server had; a negative number: none. on_resumed or on_end comes. */
void process_expect(struct process *p, struct live *l, int64_t number);
/* Ends it and all that comes from it; on_end comes. */
void process_kill(struct process *p);
/* Whoever reads it reads its end. */
void process_close_stdin(struct process *p);
/* No more callbacks. */
void process_done(struct process *p);
/* From the warden, and from number 0's socket. */
/* `why`: not all of it came. */
void processes_made(struct live *l, const struct w_kernel_made *m, struct wire_in *in,
                    const char *why);
void processes_failed(struct live *l, uint32_t number, const char *why);
void processes_exited(struct live *l, uint32_t number, int status);
/* What a kernel said was heard: those that have exited and waited for it end soon. */
void processes_end_exited(struct live *l);
void processes_frame(struct live *l, struct wire_in *in);
void processes_hung_up(struct live *l);
/* Where to note what the process was refused, or NULL. */
struct denials *processes_denied(struct live *l, uint32_t number);
void processes_first_here(struct live *l);
/* All that an earlier server had are here: the others are dead. */
void processes_all_here(struct live *l);
/* The sandbox ends, and its kernels and commands have: the rest of them. */
void processes_ended_with(struct live *l);
