/* See watch_kernel.h. Theory of operation.
 *
 * We are in the sandbox's ipc and network namespaces, and ask the kernel for what is in them: the
 * objects of System V by their calls, the sockets by their list (diag_list.h), which tells of each
 * what its buffers hold. A unix socket's message is on the account of the one that sent it. When
 * that is closed it is in no list any more, the message is, unread, in the receiver's: there the
 * most counts that a sender can have sent. Where the kernel has no such list, sockets are not seen.
 */

#include "init/watch_kernel.h"

#include "init/diag_list.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#define SEMAPHORE 128          /* bytes, with its share of the set */
#define QUEUE     512          /* bytes, of a message queue or a set without its content */
#define SOCKET    2048         /* bytes, of a socket itself */
#define SENDER    (425u << 10) /* twice the usual net.core.wmem_max */

static uint64_t buffers(const uint32_t *memory) {
    if (!memory)
        return 0;
    /* What TCP has not sent yet is in its queue alone; others have no such queue. */
    uint32_t sent = memory[SK_MEMINFO_WMEM_ALLOC], queued = memory[SK_MEMINFO_WMEM_QUEUED];
    return (uint64_t)memory[SK_MEMINFO_RMEM_ALLOC] + (sent > queued ? sent : queued) +
           memory[SK_MEMINFO_FWD_ALLOC] + memory[SK_MEMINFO_OPTMEM] + memory[SK_MEMINFO_BACKLOG];
}

static void add_unix(void *sum, const struct nlmsghdr *h) {
    const size_t head = sizeof(struct unix_diag_msg);
    const struct unix_diag_rqlen *unread = diag_find(h, head, UNIX_DIAG_RQLEN, sizeof *unread);
    const uint32_t *peer = diag_find(h, head, UNIX_DIAG_PEER, sizeof *peer);
    const struct unix_diag_msg *m = NLMSG_DATA(h);
    bool listens = m->udiag_state == 10; /* TCP_LISTEN: then it is a number of connections */
    bool left = unread && unread->udiag_rqueue && !listens && (!peer || *peer == 0);
    *(uint64_t *)sum += SOCKET + buffers(diag_memory_unix(h)) + (left ? SENDER : 0);
}

static void add_inet(void *sum, const struct nlmsghdr *h) {
    *(uint64_t *)sum += SOCKET + buffers(diag_memory_inet(h));
}

static uint64_t sockets(bool network) {
    uint64_t sum = 0;
    diag_list_unix(UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN | UDIAG_SHOW_MEMINFO, add_unix, &sum);
    if (network) {
        diag_list_inet(IPPROTO_TCP, add_inet, &sum);
        diag_list_inet(IPPROTO_UDP, add_inet, &sum);
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
