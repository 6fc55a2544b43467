/* See wire.h. Packets: u16 type, u16 version, payload. A string or byte field is a u32 length and
 * the bytes; a string carries its NUL, so that it can be used in place. */

#include "wire/wire.h"

#include "base/fd.h"
#include "wire/fields.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static const struct {
    const char *name; /* NULL: there is no such message */
    uint16_t since;
} types[WIRE_TYPES_] = {
#define X(name, number, since) [number] = {#name, since},
    WIRE_MESSAGES(X)
#undef X
};

static bool is_known(unsigned type) {
    return type < WIRE_TYPES_ && types[type].name;
}

const char *wire_type_name(enum wire_type type) {
    return is_known(type) ? types[type].name : "unknown";
}

const char *wire_out_name(const struct wire_out *o) {
    uint16_t type;
    memcpy(&type, o->data, sizeof type);
    return wire_type_name((enum wire_type)type);
}

void wire_begin(struct wire_out *o, enum wire_type type) {
    uint16_t head[2] = {(uint16_t)type, WIRE_VERSION};
    memcpy(o->data, head, sizeof head);
    o->len = sizeof head;
    o->bad = false;
    o->nfds = 0;
    o->nmarks = 0;
}

void wire_mark(struct wire_out *o, uint16_t since) {
    uint16_t last = o->nmarks ? o->marks[o->nmarks - 1].since : WIRE_OLDEST;
    if (since <= last)
        return;
    if (o->nmarks == WIRE_MARKS) {
        o->bad = true;
        return;
    }
    o->marks[o->nmarks++] = (struct wire_mark){since, o->nfds, o->len};
}

bool wire_reaches(const struct wire_out *o, uint16_t version) {
    uint16_t type;
    memcpy(&type, o->data, sizeof type);
    return !o->bad && version >= WIRE_OLDEST && types[type].since <= version;
}

bool wire_lower(const struct wire_out *o, uint16_t version, struct wire_out *ret) {
    uint16_t head[2];
    if (!wire_reaches(o, version))
        return false;
    memcpy(head, o->data, sizeof head);
    ret->len = o->len;
    ret->nfds = o->nfds;
    ret->bad = false;
    ret->nmarks = 0;
    for (unsigned k = o->nmarks; k-- && o->marks[k].since > version;) {
        ret->len = o->marks[k].len;
        ret->nfds = o->marks[k].nfds;
    }
    head[1] = version;
    memcpy(ret->data, o->data, ret->len);
    memcpy(ret->data, head, sizeof head);
    memcpy(ret->fds, o->fds, ret->nfds * sizeof(int));
    return true;
}

static void put(struct wire_out *o, const void *data, size_t len) {
    if (o->bad || len > sizeof o->data - o->len) {
        o->bad = true;
        return;
    }
    if (len)
        memcpy(o->data + o->len, data, len);
    o->len += len;
}

void wire_put_u32(struct wire_out *o, uint32_t v) {
    put(o, &v, sizeof v);
}

void wire_put_u64(struct wire_out *o, uint64_t v) {
    put(o, &v, sizeof v);
}

void wire_put_bytes(struct wire_out *o, const void *data, size_t len) {
    if (len > WIRE_MAX) {
        o->bad = true;
        return;
    }
    wire_put_u32(o, (uint32_t)len);
    put(o, data, len);
}

void wire_put_str(struct wire_out *o, const char *s) {
    wire_put_bytes(o, s, strlen(s) + 1);
}

void wire_put_strn(struct wire_out *o, const char *s, size_t len) {
    if (len >= WIRE_MAX) {
        o->bad = true;
        return;
    }
    wire_put_u32(o, (uint32_t)len + 1);
    put(o, s, len);
    put(o, "", 1);
}

void wire_put_raw(struct wire_out *o, const void *data, size_t len) {
    put(o, data, len);
}

void wire_put_fd(struct wire_out *o, int fd) {
    if (o->nfds == WIRE_MAX_FDS || fd < 0) {
        o->bad = true;
        return;
    }
    o->fds[o->nfds++] = fd;
}

union fd_space {
    struct cmsghdr align;
    char data[CMSG_SPACE(WIRE_ALL_FDS * sizeof(int))];
};

enum wire_sent wire_send(int sock, const struct wire_out *o, struct err *e) {
    if (o->bad) {
        err_set(e, EMSGSIZE, "message does not fit into a packet");
        return WIRE_FAILED;
    }
    struct iovec iov = {.iov_base = (void *)o->data, .iov_len = o->len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union fd_space space;
    if (o->nfds) {
        memset(&space, 0, CMSG_SPACE(o->nfds * sizeof(int)));
        msg.msg_control = space.data;
        msg.msg_controllen = CMSG_SPACE(o->nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(o->nfds * sizeof(int));
        memcpy(CMSG_DATA(c), o->fds, o->nfds * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return WIRE_SENT;
    if (errno == EAGAIN || errno == ENOBUFS)
        return WIRE_AGAIN;
    err_sys(e, "send");
    return WIRE_FAILED;
}

/* Takes every descriptor out of the control data. */
static void take_fds(struct wire_in *i, struct msghdr *msg) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t k = 0; k < n; k++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + k * sizeof fd, sizeof fd);
            if (i->nfds < WIRE_ALL_FDS)
                i->fds[i->nfds++] = fd;
            else
                fd_close(&fd);
        }
    }
}

int wire_open(struct wire_in *i, size_t len, struct err *e) {
    uint16_t head[2];
    if (len < sizeof head)
        return err_set(e, EPROTO, "packet of %zu bytes has no header", len);
    memcpy(head, i->data, sizeof head);
    if (head[1] < WIRE_OLDEST || head[1] > WIRE_VERSION)
        return err_set(e, EPROTONOSUPPORT,
                       "packet of version %u, this program understands %d to %d", head[1],
                       WIRE_OLDEST, WIRE_VERSION);
    if (!is_known(head[0]))
        return err_set(e, EPROTO, "unknown message type %u", head[0]);
    i->type = (enum wire_type)head[0];
    i->version = head[1];
    i->len = len;
    i->at = sizeof head;
    i->bad = false;
    i->fd_at = 0;
    return 0;
}

enum wire_got wire_recv(int sock, struct wire_in *i, struct err *e) {
    struct iovec iov = {.iov_base = i->data, .iov_len = sizeof i->data};
    union fd_space space;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof space};
    i->nfds = i->fd_at = 0;
    i->cut = false;
    ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return WIRE_NONE;
        err_sys(e, "receive");
        return errno == ECONNRESET ? WIRE_EOF : WIRE_BAD;
    }
    take_fds(i, &msg);
    if (n == 0 && i->nfds == 0)
        return WIRE_EOF;
    if ((msg.msg_flags & MSG_TRUNC) || i->nfds > WIRE_MAX_FDS) {
        err_set(e, EPROTO, "packet too large or with too many descriptors");
        return WIRE_BAD;
    }
    if (wire_open(i, (size_t)n, e) < 0)
        return WIRE_BAD;
    i->cut = msg.msg_flags & MSG_CTRUNC; /* there is room for more than a packet can bring */
    if (i->cut)
        err_set(e, EMFILE, "no descriptor is left for what came with a packet");
    return i->cut ? WIRE_BAD : WIRE_GOT;
}

void wire_in_done(struct wire_in *i) {
    while (i->fd_at < i->nfds)
        fd_close(&i->fds[i->fd_at++]);
    i->nfds = i->fd_at = 0;
}

static const uint8_t *get(struct wire_in *i, size_t len) {
    if (i->bad || len > i->len - i->at) {
        i->bad = true;
        return NULL;
    }
    const uint8_t *p = i->data + i->at;
    i->at += len;
    return p;
}

uint32_t wire_get_u32(struct wire_in *i) {
    uint32_t v = 0;
    const uint8_t *p = get(i, sizeof v);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

uint64_t wire_get_u64(struct wire_in *i) {
    uint64_t v = 0;
    const uint8_t *p = get(i, sizeof v);
    if (p)
        memcpy(&v, p, sizeof v);
    return v;
}

const uint8_t *wire_get_bytes(struct wire_in *i, size_t *ret_len) {
    uint32_t len = wire_get_u32(i);
    const uint8_t *p = get(i, len);
    *ret_len = p ? len : 0;
    return p;
}

const char *wire_get_str(struct wire_in *i, size_t max) {
    size_t len;
    const uint8_t *p = wire_get_bytes(i, &len);
    if (p && len >= 1 && len - 1 <= max && memchr(p, '\0', len) == p + len - 1)
        return (const char *)p;
    i->bad = true;
    return "";
}

int wire_take_fd(struct wire_in *i) {
    if (i->fd_at == i->nfds) {
        i->bad = true;
        return -1;
    }
    return i->fds[i->fd_at++];
}

int wire_end(struct wire_in *i, struct err *e) {
    if (i->bad)
        return err_set(e, EPROTO, "%s: malformed", wire_type_name(i->type));
    if (i->at != i->len)
        return err_set(e, EPROTO, "%s: %zu bytes too many", wire_type_name(i->type),
                       i->len - i->at);
    return 0;
}

int wire_pair(int ret[2], struct err *e) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        return err_sys(e, "socketpair");
    return 0;
}
