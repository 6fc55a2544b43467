#pragma once
/* What of the kernel a network for sandboxes stands on, tried one after the other. */

struct egress_finding {
    int fact;   /* the first that does not hold, counted from 1; 0: all do */
    int errnum; /* of the call that showed it; 0: there is none */
};

/* In a network namespace of its own, with its lo not yet up, and with CAP_NET_ADMIN and CAP_NET_RAW
 * over it. */
void egress_try(struct egress_finding *ret);
/* In words: "a listener whose filter drops everything leaves a connect unanswered". */
const char *egress_fact(int number);
