/* See diag_list.h. A diagnosis socket (NETLINK_SOCK_DIAG) answers within the call. There is one for
 * all lists: after it is closed the kernel counts a netlink socket for a while, and with a list
 * every 20 ms there would always be some that nobody has. */

#include "init/diag_list.h"

#include "base/fd.h"

#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#define REPLY 32768

static int diag = -1;

const void *diag_find(const struct nlmsghdr *h, size_t head, unsigned short type, size_t least) {
    size_t at = NLMSG_ALIGN(sizeof *h) + NLMSG_ALIGN(head);
    while (at + sizeof(struct nlattr) <= h->nlmsg_len) {
        const struct nlattr *a = (const void *)((const char *)h + at);
        if (a->nla_len < sizeof *a || at + a->nla_len > h->nlmsg_len)
            return NULL;
        if (a->nla_type == type)
            return a->nla_len >= sizeof *a + least ? a + 1 : NULL;
        at += NLA_ALIGN(a->nla_len);
    }
    return NULL;
}

const uint32_t *diag_memory_unix(const struct nlmsghdr *h) {
    return diag_find(h, sizeof(struct unix_diag_msg), UNIX_DIAG_MEMINFO,
                     sizeof(uint32_t) * SK_MEMINFO_DROPS);
}

const uint32_t *diag_memory_inet(const struct nlmsghdr *h) {
    return diag_find(h, sizeof(struct inet_diag_msg), INET_DIAG_SKMEMINFO,
                     sizeof(uint32_t) * SK_MEMINFO_DROPS);
}

struct asked {
    size_t head; /* of a socket's message */
    diag_fn *fn;
    void *arg;
};

enum list_state { LIST_GOES_ON, LIST_IS_OVER, LIST_IS_MISSING };

static enum list_state take_reply(const char *reply, size_t len, const struct asked *a) {
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= len;) {
        const struct nlmsghdr *h = (const void *)(reply + at);
        if (h->nlmsg_len < sizeof *h || at + h->nlmsg_len > len || h->nlmsg_type == NLMSG_ERROR)
            return LIST_IS_MISSING;
        if (h->nlmsg_type == NLMSG_DONE)
            return LIST_IS_OVER;
        if (h->nlmsg_len >= NLMSG_LENGTH(a->head))
            a->fn(a->arg, h);
        at += NLMSG_ALIGN(h->nlmsg_len);
    }
    return len == 0 ? LIST_IS_OVER : LIST_GOES_ON;
}

static bool ask(const void *request, size_t size, const struct asked *a) {
    static _Alignas(struct nlmsghdr) char reply[REPLY];
    _Alignas(struct nlmsghdr) char message[128];
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
                         .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
    memcpy(message, &h, sizeof h);
    memcpy(message + NLMSG_HDRLEN, request, size);
    if (send(diag, message, h.nlmsg_len, 0) < 0)
        return false;
    for (;;) { /* the kernel answers at once, in the call */
        ssize_t n = recv(diag, reply, sizeof reply, MSG_DONTWAIT);
        enum list_state is = n < 0 ? LIST_IS_MISSING : take_reply(reply, (size_t)n, a);
        if (is != LIST_GOES_ON)
            return is == LIST_IS_OVER;
    }
}

static bool open_diag(void) {
    if (diag < 0)
        diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    return diag >= 0;
}

/* What is left of an answer would be taken for the next one's. */
static bool end_list(bool whole) {
    if (!whole)
        fd_close(&diag);
    return whole;
}

unsigned diag_list_sockets(void) {
    return diag >= 0;
}

bool diag_list_unix(uint32_t show, diag_fn *fn, void *arg) {
    const struct unix_diag_req q = {
        .sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX, .udiag_show = show};
    const struct asked a = {sizeof(struct unix_diag_msg), fn, arg};
    return open_diag() && end_list(ask(&q, sizeof q, &a));
}

bool diag_list_inet(uint8_t protocol, diag_fn *fn, void *arg) {
    static const uint8_t families[] = {AF_INET, AF_INET6};
    const struct asked a = {sizeof(struct inet_diag_msg), fn, arg};
    bool all = open_diag();
    for (unsigned i = 0; diag >= 0 && i < sizeof families; i++) {
        const struct inet_diag_req_v2 q = {.sdiag_family = families[i],
                                           .sdiag_protocol = protocol,
                                           .idiag_states = UINT32_MAX,
                                           .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1)};
        all = end_list(ask(&q, sizeof q, &a)) && all;
    }
    return all;
}
