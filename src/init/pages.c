/* See pages.h. Theory of operation.
 *
 * What is sent over TCP (and over UDP with MSG_MORE) is copied into a page of 32 KiB that the
 * sending thread fills bit by bit, whatever socket the bits are for. The page belongs to no control
 * group, and a socket is charged for its own bits only: one unread byte in each page holds them all
 * (seen: 4.2 GiB by a sandbox of 64 MB). Such bytes wait where data does: in receive queues, in
 * send queues, on either side of connections that nobody accepted or that were reset.
 *
 * Nothing in the kernel counts these pages, so two things are looked at.
 *   - What the sandbox can hold: a buffer takes HEAD bytes at least beside its data, which the
 *     kernel tells apart, and has FRAGMENTS pages at most.
 *   - What the machine lacks (machine.c), more than before the sandbox's first socket.
 * The first is far above what an honest program holds (17 short messages may well share a page);
 * the second may be a neighbour's doing. When both are too much, the sandbox ends.
 *
 * SECURITY: so that no sandbox ends for what a neighbour does, the one goes first whose queues have
 * grown with what the machine lacks. It ends at once; others only if that does not help, those that
 * can hold the most of it before those that can hold little. A closed socket is in no list and
 * keeps what is in it; the kernel counts it, though. One that is not listed may be full, and most
 * are empty: who is about to end for them alone has them looked at one by one (unlisted.c).
 *
 * Until the machine lacks something, a look is reading /proc/meminfo: some 20 us. A close one takes
 * some 500 us, in each sandbox that has sockets: so those that hold little look closely seldom. */

#include "init/pages.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/diag_list.h"
#include "init/sockets.h"
#include "init/unlisted.h"
#include "init/watch_look.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOK_MS   50
#define RARELY    100 /* looks, of which one is close, in case that `before` was too much */
#define SELDOM    4 /* likewise while the machine lacks something, but not for what is held here */
#define HEAD      640 /* the smallest of any configuration; with the usual one it is 960 */
#define FRAGMENTS 17
#define FRAGMENT  32768
#define HELD_MAX  (64u << 20)
#define HIDDEN    (256u << 20) /* one socket */
#define SHARE     32           /* of the machine's memory */
#define AT_ONCE   1            /* looks */
#define SOON      8
#define LATEST    16
#define TAKE_NS   (10 * NS_PER_MS) /* then those that were not found yet count as full */

#define STATE_SYN_RECV  3 /* of TCP; these two are no sockets yet or any more */
#define STATE_TIME_WAIT 6

void pages_open(struct pages *p, const int files[MACHINE_FILES]) {
    *p = (struct pages){.timer = -1};
    machine_begin(&p->machine, files);
}

static void set_timer(const struct pages *p, long ns) {
    const struct itimerspec spec = {.it_value.tv_nsec = ns};
    timerfd_settime(p->timer, 0, &spec, NULL);
}

void pages_begin(struct pages *p) {
    if (p->timer >= 0 || p->machine.meminfo <= 0)
        return;
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    p->before = UINT64_MAX;
    p->looks = RARELY - 1; /* the first look is close; the caller does not wait for it */
    set_timer(p, 1);
}

static uint64_t buffers(uint64_t bytes) {
    return (bytes + HEAD - 1) / HEAD;
}

uint64_t pages_held(const struct queues *q) {
    uint64_t n = buffers(less(q->received, q->unread)) + buffers(less(q->sent, q->unsent)) +
                 buffers(q->backlog);
    return less(n * FRAGMENTS * FRAGMENT, q->received + q->sent + q->backlog);
}

struct found {
    unsigned all, unix_domain, internet;
    uint64_t held;
    struct unlisted *taken; /* borrowed */
};

static void count_unix(void *found, const struct nlmsghdr *h) {
    (void)h;
    ((struct found *)found)->unix_domain++;
}

static void add_queues(struct found *f, const struct nlmsghdr *h, uint32_t unread,
                       uint32_t unsent) {
    const uint32_t *memory = diag_memory_inet(h);
    f->internet++;
    unlisted_mark(f->taken, ((const struct inet_diag_msg *)NLMSG_DATA(h))->id.idiag_cookie);
    if (!memory)
        return;
    const struct queues q = {
        .received = memory[SK_MEMINFO_RMEM_ALLOC],
        .unread = unread,
        .sent = most(memory[SK_MEMINFO_WMEM_QUEUED], memory[SK_MEMINFO_WMEM_ALLOC]),
        .unsent = unsent,
        .backlog = memory[SK_MEMINFO_BACKLOG]};
    f->held += pages_held(&q);
}

static void add_tcp(void *found, const struct nlmsghdr *h) {
    const struct inet_diag_msg *m = NLMSG_DATA(h);
    if (m->idiag_state != STATE_TIME_WAIT && m->idiag_state != STATE_SYN_RECV)
        add_queues(found, h, m->idiag_rqueue, m->idiag_wqueue);
}

/* Here the list does not tell how much of what a queue takes up is data. */
static void add_udp(void *found, const struct nlmsghdr *h) {
    add_queues(found, h, 0, 0);
}

/* All of them first: the sockets that ask for the lists count for a while after they are closed. */
static struct found count_sockets(struct unlisted *taken) {
    struct found f = {.all = sockets_count(), .taken = taken};
    diag_list_inet(IPPROTO_TCP, add_tcp, &f);
    diag_list_inet(IPPROTO_UDP, add_udp, &f);
    diag_list_unix(0, count_unix, &f);
    return f;
}

unsigned pages_patience(const struct pages_look *first, const struct pages_look *now) {
    uint64_t lacks_more = less(now->lacking, first->lacking);
    bool grew = less(now->listed, first->listed) >= lacks_more / 2;
    if (grew && lacks_more >= now->lacking / 8)
        return AT_ONCE;
    uint64_t looks = SOON * (now->lacking / (now->listed + now->hidden + 1));
    return looks < SOON ? SOON : looks > LATEST ? LATEST : (unsigned)looks;
}

/* What may be in the sockets that no list has: those that were found say it. */
static uint64_t hidden_bytes(const struct found *f, const struct pages_others *o) {
    const struct unlisted_sum s = unlisted_sum(f->taken);
    unsigned known = f->unix_domain + f->internet + o->netlink + o->ours + s.inside;
    unsigned full = (unsigned)less(f->all, known) + (unsigned)less(o->outside, s.outside);
    return s.held + full * (uint64_t)HIDDEN;
}

static bool is_too_much(const struct pages_look *l, uint64_t bound) {
    return l->listed + l->hidden > HELD_MAX && l->lacking > bound;
}

static struct pages_look look_at_all(struct pages *p, const struct pages_others *o,
                                     struct unlisted *taken) {
    uint64_t unlisted = machine_unlisted(&p->machine);
    p->before = unlisted < p->before ? unlisted : p->before;
    struct found f = count_sockets(taken);
    return (struct pages_look){
        .listed = f.held, .hidden = hidden_bytes(&f, o), .lacking = unlisted - p->before};
}

/* Sockets are taken when the look before found too much: nobody ends for what no list has unless
 * it was looked at. */
static bool look_closely(struct pages *p, const struct pages_others *o, uint64_t bound) {
    static struct unlisted taken;
    bool looked_at = p->late > 0;
    if (looked_at)
        unlisted_take(&taken, o->sockets, thread_cpu_ns() + TAKE_NS);
    struct pages_look now = look_at_all(p, o, &taken);
    unlisted_drop(&taken);
    bool alert = now.lacking > bound / 2;
    if (alert && !p->alert)
        p->first = now;
    p->alert = alert;
    p->late = is_too_much(&now, bound) ? p->late + 1 : 0;
    return p->late && p->late >= pages_patience(&p->first, &now) &&
           (looked_at || now.listed > HELD_MAX);
}

unsigned pages_every(bool lacks, bool alert, bool late) {
    return !lacks ? RARELY : alert && !late ? SELDOM : 1;
}

bool pages_tick(struct pages *p, const struct pages_others *o) {
    uint64_t fired, unlisted = machine_unlisted_about(&p->machine);
    uint64_t bound = most(HELD_MAX, p->machine.total / SHARE);
    (void)!read(p->timer, &fired, sizeof fired);
    set_timer(p, LOOK_MS * 1000000);
    bool lacks = less(unlisted, p->before) > bound / 2;
    if (++p->looks % pages_every(lacks, p->alert, p->late) == 0)
        return look_closely(p, o, bound);
    p->alert = p->alert && lacks;
    p->late = lacks ? p->late : 0;
    return false;
}
