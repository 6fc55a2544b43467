/* See resolver.h. c-ares does what a stub resolver does: ids, ports, repetition, the next server,
 * TCP for what is cut. It was told to look into no file, and what it returns is a packet that
 * reply.c reads.
 *
 * SECURITY: a sandbox can make us ask whatever its rules allow, as often as it likes, and have a
 * friend outside send forged answers meanwhile; one that is taken makes an address of his an
 * allowed name's. So questions are in letters of random case, which an answer has to repeat, and
 * each goes out by a socket of its own where c-ares can do that (1.20).
 *
 * Its sockets are watched by our loop; it is called with one ready socket at a time.
 *
 * An entry is a question and then its answer. All are in a table by name and type, and in a list
 * from the one used last to the one used longest ago, of which the answers go when there are too
 * many. When all are questions, a further one fails: each sandbox has a bound of its own. */

#define CARES_NO_DEPRECATED
#include "gate/resolver.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "gate/servers.h"

#include <ares.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUCKETS    1024
#define TIMEOUT_MS 2000
#define TRIES      2
#define EDNS_BYTES 1232
#define FAILED_S   2     /* how long a failure is kept */
#define ROUTE_MS   10000 /* how long it is believed that there is an IPv6 route, or none */
#define CLASS_IN   1

struct resolver_entry {
    struct resolver_entry *next;          /* in its bucket */
    struct resolver_entry *newer, *older; /* by use */
    struct resolver *of;                  /* borrowed */
    struct resolver_ask *waiting;         /* borrowed */
    bool is_open;                         /* no answer yet */
    uint16_t type;
    uint64_t until_ms;
    struct reply reply;
    char name[NET_NAME_SIZE];
    char asked[NET_NAME_SIZE]; /* the same in random case */
};

/* Of c-ares. */
struct resolver_socket {
    struct resolver_socket *next;
    struct resolver *of; /* borrowed */
    struct watch watch;
};

struct resolver {
    struct loop *loop; /* borrowed */
    ares_channel ares; /* owned */
    bool has_servers;
    struct resolver_socket *sockets; /* owned; those without a descriptor are used again */
    struct timer timer;
    struct resolver_entry *buckets[BUCKETS]; /* owned */
    struct resolver_entry *newest, *oldest;
    unsigned n;
    uint64_t route_ms;
    bool has_route;
};

/* ---- the table ---- */

static struct resolver_entry **bucket_of(struct resolver *r, const char *name, uint16_t type) {
    uint32_t h = type;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return &r->buckets[(h ^ h >> 16) % BUCKETS];
}

static void unlink_use(struct resolver_entry *x) {
    struct resolver *r = x->of;
    *(x->newer ? &x->newer->older : &r->newest) = x->older;
    *(x->older ? &x->older->newer : &r->oldest) = x->newer;
}

static void link_use(struct resolver_entry *x) {
    struct resolver *r = x->of;
    x->newer = NULL;
    x->older = r->newest;
    *(r->newest ? &r->newest->newer : &r->oldest) = x;
    r->newest = x;
}

static void entry_free(struct resolver_entry *x) {
    LIST_REMOVE(bucket_of(x->of, x->name, x->type), x, next);
    unlink_use(x);
    x->of->n--;
    free(x);
}

static struct resolver_entry *entry_find(struct resolver *r, const char *name, uint16_t type) {
    struct resolver_entry *x = *bucket_of(r, name, type);
    while (x && (x->type != type || strcmp(x->name, name) != 0))
        x = x->next;
    if (!x)
        return NULL;
    if (!x->is_open && x->until_ms <= now_ms()) {
        entry_free(x);
        return NULL;
    }
    unlink_use(x);
    link_use(x);
    return x;
}

static bool entry_make_room(struct resolver *r) {
    struct resolver_entry *x = r->n < RESOLVER_ENTRIES ? NULL : r->oldest;
    while (x && x->is_open)
        x = x->newer;
    if (x)
        entry_free(x);
    return r->n < RESOLVER_ENTRIES;
}

static struct resolver_entry *entry_new(struct resolver *r, const char *name, uint16_t type) {
    if (strlen(name) >= NET_NAME_SIZE || !entry_make_room(r))
        return NULL;
    struct resolver_entry *x = xcalloc(1, sizeof *x);
    x->of = r;
    x->type = type;
    x->is_open = true;
    memcpy(x->name, name, strlen(name) + 1);
    LIST_PUSH(bucket_of(r, name, type), x, next);
    link_use(x);
    r->n++;
    return x;
}

/* ---- c-ares ---- */

static void set_timer(struct resolver *r) {
    struct timeval tv;
    if (!ares_timeout(r->ares, NULL, &tv)) {
        loop_timer_stop(r->loop, &r->timer);
        return;
    }
    loop_timer_in_ms(r->loop, &r->timer,
                     (uint64_t)tv.tv_sec * 1000 + (uint64_t)(tv.tv_usec + 999) / 1000);
}

static void resolver_on_socket(struct watch *w, uint32_t events) {
    struct resolver_socket *s = w->arg;
    struct resolver *r = s->of;
    bool in = events & (EPOLLIN | EPOLLHUP | EPOLLERR), out = events & (EPOLLOUT | EPOLLERR);
    ares_process_fd(r->ares, in ? w->fd : ARES_SOCKET_BAD, out ? w->fd : ARES_SOCKET_BAD);
    set_timer(r);
}

static void resolver_on_timer(struct timer *t) {
    struct resolver *r = t->arg;
    ares_process_fd(r->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(r);
}

static struct resolver_socket *socket_of(struct resolver *r, int fd) {
    for (struct resolver_socket *s = r->sockets; s; s = s->next)
        if (s->watch.fd == fd)
            return s;
    return NULL;
}

/* c-ares waits for something else on a socket, or (for nothing) is about to close it. */
static void resolver_on_state(void *arg, ares_socket_t fd, int readable, int writable) {
    struct resolver *r = arg;
    struct err e;
    uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
    struct resolver_socket *s = socket_of(r, fd);
    if (s && events == 0)
        loop_unwatch(r->loop, &s->watch);
    else if (s)
        loop_rewatch(r->loop, &s->watch, events, &e);
    if (s || events == 0)
        return;
    s = socket_of(r, -1);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        s->of = r;
        LIST_PUSH(&r->sockets, s, next);
    }
    s->watch = (struct watch){.fd = -1, .fn = resolver_on_socket, .arg = s};
    (void)loop_watch(r->loop, &s->watch, fd, events, &e); /* else it is a server that is silent */
}

/* ---- questions ---- */

static void settle(struct resolver_entry *x) {
    while (x->waiting) {
        struct resolver_ask *a = LIST_POP(&x->waiting, next);
        a->entry = NULL;
        a->fn(a, &x->reply);
    }
}

static void resolver_on_answer(void *arg, int status, int timeouts, unsigned char *packet,
                               int len) {
    struct resolver_entry *x = arg;
    (void)timeouts;
    x->is_open = false;
    x->reply = (struct reply){.rcode = NET_RCODE_FAILED};
    if (packet && len > 0)
        reply_read(packet, (size_t)len, x->asked, x->type, &x->reply);
    uint32_t keep_s = x->reply.rcode == NET_RCODE_FAILED ? FAILED_S : x->reply.ttl_s;
    x->until_ms = status == ARES_EDESTRUCTION || status == ARES_ECANCELLED
                      ? 0 /* other servers may know */
                      : now_ms() + keep_s * 1000ull;
    settle(x);
}

/* Whether anything beyond this network could be reached by IPv6: connecting a UDP socket asks for
 * the route and sends nothing. Where there is none, addresses of IPv6 would only make programs wait
 * for them. */
static bool has_route(struct resolver *r) {
    static const struct sockaddr_in6 far = {
        .sin6_family = AF_INET6, .sin6_port = 53, .sin6_addr = {{{0x20, 0, [15] = 1}}}};
    uint64_t now = now_ms();
    if (r->route_ms && now - r->route_ms < ROUTE_MS)
        return r->has_route;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    r->has_route = fd >= 0 && connect(fd, (const struct sockaddr *)&far, sizeof far) == 0;
    r->route_ms = now;
    if (fd >= 0)
        close(fd);
    return r->has_route;
}

static void mix_case(struct resolver_entry *x) {
    uint8_t bits[NET_NAME_SIZE / 8 + 1];
    memcpy(x->asked, x->name, sizeof x->asked);
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return; /* then there is less to guess */
    for (size_t i = 0; x->asked[i]; i++)
        if (x->asked[i] >= 'a' && x->asked[i] <= 'z' && bits[i / 8] >> i % 8 & 1)
            x->asked[i] = (char)(x->asked[i] - 'a' + 'A');
}

static void answer_now(struct resolver_ask *a, enum net_rcode rcode, uint32_t ttl_s) {
    const struct reply r = {.rcode = rcode, .ttl_s = ttl_s};
    a->fn(a, &r);
}

void resolver_ask(struct resolver *r, const char *name, uint16_t type, struct resolver_ask *a) {
    a->entry = NULL;
    if (!r->has_servers) {
        answer_now(a, NET_RCODE_FAILED, 0);
        return;
    }
    if (type == NET_DNS_AAAA && !has_route(r)) {
        answer_now(a, NET_RCODE_OK, ROUTE_MS / 1000);
        return;
    }
    struct resolver_entry *x = entry_find(r, name, type);
    if (x && !x->is_open) {
        const struct reply copy = x->reply; /* whoever hears it may ask again */
        a->fn(a, &copy);
        return;
    }
    bool is_new = !x;
    x = x ? x : entry_new(r, name, type);
    if (!x) {
        answer_now(a, NET_RCODE_FAILED, 0);
        return;
    }
    a->entry = x;
    LIST_PUSH(&x->waiting, a, next);
    if (is_new) {
        mix_case(x);
        ares_query(r->ares, x->asked, CLASS_IN, type, resolver_on_answer, x);
        set_timer(r);
    }
}

void resolver_drop(struct resolver_ask *a) {
    if (a->entry)
        LIST_REMOVE(&a->entry->waiting, a, next);
    a->entry = NULL;
}

int resolver_use(struct resolver *r, const char *servers, int resolv_fd, struct err *e) {
    struct servers list = {.n = 0};
    if (servers_parse(servers, &list, e) < 0)
        return -1;
    if (list.n == 0)
        servers_read(resolv_fd, &list);
    ares_cancel(r->ares); /* it changes servers only when nothing is under way */
    set_timer(r);
    r->has_servers = list.n > 0;
    if (list.n == 0)
        return 0;
    struct ares_addr_port_node nodes[SERVERS_MOST];
    for (unsigned i = 0; i < list.n; i++) {
        struct ares_addr_port_node *node = &nodes[i];
        *node = (struct ares_addr_port_node){.next = i + 1 < list.n ? node + 1 : NULL,
                                             .family = AF_INET6,
                                             .udp_port = list.at[i].port,
                                             .tcp_port = list.at[i].port};
        memcpy(&node->addr.addr6, list.at[i].address.b, sizeof list.at[i].address.b);
        if (!net_addr_is_v4(&list.at[i].address))
            continue;
        node->family = AF_INET;
        net_addr_v4(&list.at[i].address, (uint8_t *)&node->addr.addr4);
    }
    int rc = ares_set_servers_ports(r->ares, nodes);
    return rc == ARES_SUCCESS ? 0 : err_set(e, EIO, "name servers: %s", ares_strerror(rc));
}

int resolver_new(struct loop *l, struct resolver **ret, struct err *e) {
    struct resolver *r = xcalloc(1, sizeof *r);
    struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS,
                             .timeout = TIMEOUT_MS,
                             .tries = TRIES,
                             .ednspsz = EDNS_BYTES,
                             .lookups = (char *)"b",
                             .sock_state_cb = resolver_on_state,
                             .sock_state_cb_data = r};
    int flags = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_EDNSPSZ |
                ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
#ifdef ARES_OPT_UDP_MAX_QUERIES
    o.udp_max_queries = 1;
    flags |= ARES_OPT_UDP_MAX_QUERIES;
#endif
    r->loop = l;
    r->timer = (struct timer){.fn = resolver_on_timer, .arg = r};
    int rc = ares_library_init(ARES_LIB_INIT_ALL);
    if (rc == ARES_SUCCESS)
        rc = ares_init_options(&r->ares, &o, flags);
    if (rc != ARES_SUCCESS) {
        free(r);
        return err_set(e, EIO, "c-ares: %s", ares_strerror(rc));
    }
    *ret = r;
    return 0;
}

void resolver_free(struct resolver *r) {
    if (!r)
        return;
    ares_destroy(r->ares);
    loop_timer_stop(r->loop, &r->timer);
    while (r->newest)
        entry_free(r->newest);
    while (r->sockets) {
        struct resolver_socket *s = LIST_POP(&r->sockets, next);
        loop_unwatch(r->loop, &s->watch);
        free(s);
    }
    free(r);
}
