#pragma once
/* One connect() to outside, from the question to the end of its connection: see link.c. */

#include "init/caller.h"
#include "sandbox/egress/syn.h"
#include "usher/page.h"
#include "wire/codec.h"

struct init;
struct network;

#define LINKS USHER_SLOTS

enum link_state {
    LINK_FREE,
    LINK_ASKED,   /* the caller waits for a verdict */
    LINK_HELD,    /* the caller goes on; its SYN is not answered */
    LINK_OPENING, /* the one outside is there, and the one inside opens */
    LINK_FAILING, /* told that it failed, and perhaps not heard */
    LINK_RELAYED, /* the usher has the sockets */
    LINK_CLOSING, /* and was told to close them */
    LINK_ENDED,   /* the gate does not know it yet */
    LINK_STATES_
};

/* What a caller wants connected, as it said it. */
struct wish {
    int socket; /* the caller's own one */
    socklen_t len;
    struct sockaddr_storage address;
};

struct link {
    enum link_state state;
    uint64_t since_ms; /* in this state */
    uint32_t id;       /* for gate and usher */
    uint32_t process;
    struct caller caller; /* LINK_ASKED */
    struct end to;
    struct wish wish; /* owned; LINK_ASKED */
    bool asked;       /* of the gate that is there now */
    bool allowed;     /* by it; while LINK_ASKED the usher is not there yet */
    bool heard;       /* A_RESULT: */
    int errnum;       /* what the outside connect said */
    bool seen;        /* its SYN: */
    struct syn syn;
    unsigned tries;            /* of LINK_FAILING */
    int hold, outside, inside; /* owned; `hold` of LINK_OPENING is a listener that answers */
    uint32_t check;            /* enum net_check */
    unsigned account;          /* in the table of traffic */
    char rule[WIRE_RULE + 1];
    char name[WIRE_NAME + 1]; /* that it said last */
};

/* NULL: there is room for one more; else why there is none. */
const char *links_no_room(const struct network *n);
/* The caller, who connects to `to`, waits for a verdict from now on. */
void link_ask(struct init *b, uint32_t process, const struct caller *c, const struct end *to,
              struct wish *take);

/* For open.c. */
bool link_has_usher(const struct link *l);
void link_become(struct network *n, struct link *l, enum link_state next);
/* Before it is open. */
void link_give_up(struct network *n, struct link *l);
/* Its sockets are closed, or about to be. */
void link_end(struct network *n, struct link *l);

/* Answers from the gate. */
void link_on_verdict(struct init *b, struct wire_in *in, const struct a_verdict *m);
void link_on_result(struct init *b, struct wire_in *in, const struct a_result *m);
void link_on_helloed(struct init *b, const struct a_helloed *m);
void link_on_close(struct init *b, const struct a_close *m);
/* From the usher. */
void link_on_hello(struct init *b, const struct u_hello *m);
void link_on_end(struct init *b, const struct u_end *m);

/* The usher is there: verdicts that waited for it are told. */
void links_usher_came(struct init *b);
/* All that it had is closed, and nobody is let go on without it. */
void links_usher_lost(struct init *b, int errnum);
void links_gate_came(struct init *b);
void links_gate_lost(struct init *b);
/* Ends what was given up, or waits for too long. */
void links_look_after(struct init *b);
/* Whether there is something to look after. */
bool links_wait(const struct network *n);
/* Connections outside through which bytes may have gone. */
unsigned links_outside(const struct network *n);
/* Sockets in the namespace. */
unsigned links_sockets(const struct network *n);
