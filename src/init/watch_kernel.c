/* See watch_kernel.h. Theory of operation.
 *
 * We are in the sandbox's ipc and network namespaces, and ask the kernel for what is in them: the
 * objects of System V by their calls, the sockets through a diagnosis socket (NETLINK_SOCK_DIAG),
 * which tells of each what its buffers hold. A unix socket's message is on the account of the one
 * that sent it. When that is closed it is in no list any more, the message is, unread, in the
 * receiver's: there the most counts that a sender can have sent. Where the kernel has no such
 * diagnosis, sockets are not seen. */

#include "init/watch_kernel.h"

#include "base/fd.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEMAPHORE 128          /* bytes, with its share of the set */
#define QUEUE     512          /* bytes, of a message queue or a set without its content */
#define SOCKET    2048         /* bytes, of a socket itself */
#define SENDER    (425u << 10) /* twice the usual net.core.wmem_max */
#define REPLY     32768

/* A reply's attributes: those of unix sockets and of the internet's have the same shape. */
static const void *find(const struct nlmsghdr *h, size_t head, unsigned short type, size_t least) {
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

static uint64_t buffers(const uint32_t *memory) {
    if (!memory)
        return 0;
    /* What TCP has not sent yet is in its queue alone; others have no such queue. */
    uint32_t sent = memory[SK_MEMINFO_WMEM_ALLOC], queued = memory[SK_MEMINFO_WMEM_QUEUED];
    return (uint64_t)memory[SK_MEMINFO_RMEM_ALLOC] + (sent > queued ? sent : queued) +
           memory[SK_MEMINFO_FWD_ALLOC] + memory[SK_MEMINFO_OPTMEM] + memory[SK_MEMINFO_BACKLOG];
}

static uint64_t unix_bytes(const struct nlmsghdr *h) {
    const size_t head = sizeof(struct unix_diag_msg);
    const uint32_t *memory = find(h, head, UNIX_DIAG_MEMINFO, sizeof(uint32_t) * SK_MEMINFO_DROPS);
    const struct unix_diag_rqlen *unread = find(h, head, UNIX_DIAG_RQLEN, sizeof *unread);
    const uint32_t *peer = find(h, head, UNIX_DIAG_PEER, sizeof *peer);
    const struct unix_diag_msg *m = NLMSG_DATA(h);
    bool listens = m->udiag_state == 10; /* TCP_LISTEN: then it is a number of connections */
    bool left = unread && unread->udiag_rqueue && !listens && (!peer || *peer == 0);
    return SOCKET + buffers(memory) + (left ? SENDER : 0);
}

static uint64_t inet_bytes(const struct nlmsghdr *h) {
    return SOCKET + buffers(find(h, sizeof(struct inet_diag_msg), INET_DIAG_SKMEMINFO,
                                 sizeof(uint32_t) * SK_MEMINFO_DROPS));
}

typedef uint64_t bytes_fn(const struct nlmsghdr *h);

/* True when the list is at its end. */
static bool add_reply(const char *reply, size_t len, bytes_fn *fn, size_t head, uint64_t *sum) {
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= len;) {
        const struct nlmsghdr *h = (const void *)(reply + at);
        if (h->nlmsg_len < sizeof *h || at + h->nlmsg_len > len || h->nlmsg_type == NLMSG_DONE ||
            h->nlmsg_type == NLMSG_ERROR)
            return true;
        if (h->nlmsg_len >= NLMSG_LENGTH(head))
            *sum += fn(h);
        at += NLMSG_ALIGN(h->nlmsg_len);
    }
    return len == 0;
}

static uint64_t ask(int diag, const void *request, size_t size, bytes_fn *fn, size_t head) {
    static _Alignas(struct nlmsghdr) char reply[REPLY];
    _Alignas(struct nlmsghdr) char message[128];
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
                         .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
    memcpy(message, &h, sizeof h);
    memcpy(message + NLMSG_HDRLEN, request, size);
    if (send(diag, message, h.nlmsg_len, 0) < 0)
        return 0;
    uint64_t sum = 0;
    for (;;) { /* the kernel answers at once, in the call */
        ssize_t n = recv(diag, reply, sizeof reply, MSG_DONTWAIT);
        if (n <= 0 || add_reply(reply, (size_t)n, fn, head, &sum))
            return sum;
    }
}

static uint64_t sockets(bool network) {
    AUTO_FD diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (diag < 0)
        return 0;
    const struct unix_diag_req local = {.sdiag_family = AF_UNIX,
                                        .udiag_states = UINT32_MAX,
                                        .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN |
                                                      UDIAG_SHOW_MEMINFO};
    uint64_t sum = ask(diag, &local, sizeof local, unix_bytes, sizeof(struct unix_diag_msg));
    static const uint8_t families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
    for (unsigned i = 0; network && i < 4; i++) {
        const struct inet_diag_req_v2 inet = {.sdiag_family = families[i / 2],
                                              .sdiag_protocol = protocols[i % 2],
                                              .idiag_states = UINT32_MAX,
                                              .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1)};
        sum += ask(diag, &inet, sizeof inet, inet_bytes, sizeof(struct inet_diag_msg));
    }
    return sum;
}

struct kernel_bytes watch_kernel(bool network) {
    struct kernel_bytes found = {0};
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct shm_info shm = {0};
    struct msginfo msg = {0};
    struct seminfo sem = {0};
    union { /* as semctl wants it */
        struct seminfo *info;
    } arg = {&sem};
    if (shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shm) >= 0)
        found.segments = ((uint64_t)shm.shm_rss + shm.shm_swp) * page;
    if (msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&msg) >= 0)
        found.rest += (uint64_t)msg.msgpool * QUEUE + (uint64_t)msg.msgmap * 64 +
                      (uint64_t)(unsigned)msg.msgtql;
    if (semctl(0, 0, SEM_INFO, arg) >= 0)
        found.rest += (uint64_t)sem.semusz * QUEUE + (uint64_t)sem.semaem * SEMAPHORE;
    found.rest += sockets(network);
    return found;
}
