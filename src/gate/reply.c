/* See reply.h. One pass finds the records of the answer; then aliases are followed by name, from
 * the name that was asked for: what the packet says of other names is never looked at. Records
 * beyond RECORDS_MOST and aliases beyond HOPS_MOST are as if they were not there, and a compressed
 * name points backwards only, so the work is bounded by the packet's size. */

#include "gate/reply.h"

#include <string.h>
#include <strings.h>

#define HEAD         12
#define CLASS_IN     1
#define TYPE_CNAME   5
#define RECORDS_MOST 256
#define HOPS_MOST    16
#define LABEL_MOST   63
#define NO_TTL_S     30 /* for what is not there */

struct packet {
    const uint8_t *data;
    size_t len;
};

struct record {
    char owner[NET_NAME_SIZE];
    uint16_t type;
    uint32_t ttl_s;
    size_t at, len; /* its data */
};

static unsigned get_u16(const uint8_t *p) {
    return (unsigned)(p[0] << 8 | p[1]);
}

static uint32_t get_u32(const uint8_t *p) {
    return (uint32_t)get_u16(p) << 16 | get_u16(p + 2);
}

/* The name at *at as text with dots; *at goes behind it. False: it is none. A name with bytes that
 * a host's name does not have is read as "?", which is no name that anybody asked for. */
static bool read_name(const struct packet *p, size_t *at, char ret[NET_NAME_SIZE]) {
    size_t from = *at, limit = *at, used = 0;
    bool jumped = false;
    ret[0] = '\0';
    for (;;) {
        if (from >= p->len)
            return false;
        unsigned label = p->data[from];
        if ((label & 0xc0) == 0xc0) {
            size_t to = from + 2 <= p->len ? get_u16(p->data + from) & 0x3fff : p->len;
            if (!jumped)
                *at = from + 2;
            jumped = true;
            if (to >= limit)
                return false;
            from = limit = to;
            continue;
        }
        if (label > LABEL_MOST || from + 1 + label > p->len)
            return false;
        from++;
        if (label == 0)
            break;
        if (used + label + 1 >= NET_NAME_SIZE)
            return false;
        if (used)
            ret[used++] = '.';
        for (unsigned i = 0; i < label; i++) {
            uint8_t c = p->data[from + i];
            ret[used++] = (char)(c > ' ' && c < 0x7f && c != '.' ? c : '?');
        }
        ret[used] = '\0';
        from += label;
    }
    if (!jumped)
        *at = from;
    return true;
}

static bool read_record(const struct packet *p, size_t *at, struct record *ret) {
    if (!read_name(p, at, ret->owner) || p->len - *at < 10)
        return false;
    const uint8_t *fixed = p->data + *at;
    ret->type = get_u16(fixed + 2) == CLASS_IN ? (uint16_t)get_u16(fixed) : 0;
    ret->ttl_s = get_u32(fixed + 4);
    if (ret->ttl_s > NET_TTL_MAX) /* negative ones, too */
        ret->ttl_s = ret->ttl_s & 0x80000000 ? 0 : NET_TTL_MAX;
    ret->len = get_u16(fixed + 8);
    ret->at = *at + 10;
    if (ret->len > p->len - ret->at)
        return false;
    *at = ret->at + ret->len;
    return true;
}

static void add_address(const struct packet *p, const struct record *r, struct reply *ret) {
    struct net_addr a;
    if (r->type == NET_DNS_A && r->len == 4)
        a = net_addr_of_v4(p->data + r->at);
    else if (r->type == NET_DNS_AAAA && r->len == sizeof a.b)
        memcpy(a.b, p->data + r->at, sizeof a.b);
    else
        return;
    for (unsigned i = 0; i < ret->n; i++)
        if (net_addr_same(&ret->at[i], &a))
            return;
    if (ret->n < NET_ADDRESSES)
        ret->at[ret->n++] = a;
}

/* The addresses of `name`; or its alias, in `name`. False: neither. */
static bool reply_step(const struct packet *p, size_t at, unsigned records, uint16_t type,
                       char name[NET_NAME_SIZE], struct reply *ret) {
    struct record r, alias = {.len = 0};
    bool has_alias = false;
    for (unsigned i = 0; i < records && read_record(p, &at, &r); i++) {
        if ((r.type != type && r.type != TYPE_CNAME) || strcasecmp(r.owner, name) != 0)
            continue;
        if (r.type == TYPE_CNAME && !has_alias) {
            alias = r;
            has_alias = true;
            continue;
        }
        unsigned before = ret->n;
        add_address(p, &r, ret);
        if (ret->n > before && r.ttl_s < ret->ttl_s)
            ret->ttl_s = r.ttl_s;
    }
    if (ret->n > 0 || !has_alias)
        return false;
    if (alias.ttl_s < ret->ttl_s)
        ret->ttl_s = alias.ttl_s;
    size_t to = alias.at;
    return read_name(p, &to, name) && to == alias.at + alias.len;
}

/* Goes behind the question; false: it is not ours. */
static bool skip_question(const struct packet *p, size_t *at, const char *name, uint16_t type) {
    char asked[NET_NAME_SIZE];
    *at = HEAD;
    if (get_u16(p->data + 4) != 1 || !read_name(p, at, asked) || p->len - *at < 4 ||
        strcmp(asked, name) != 0 || get_u16(p->data + *at) != type ||
        get_u16(p->data + *at + 2) != CLASS_IN)
        return false;
    *at += 4;
    return true;
}

void reply_read(const uint8_t *packet, size_t len, const char *name, uint16_t type,
                struct reply *ret) {
    const struct packet p = {packet, len};
    size_t at;
    *ret = (struct reply){.rcode = NET_RCODE_FAILED};
    if (len < HEAD || !(packet[2] & 0x80) || !skip_question(&p, &at, name, type))
        return;
    unsigned rcode = packet[3] & 0xf, records = get_u16(packet + 6);
    if (rcode != NET_RCODE_OK && rcode != NET_RCODE_NO_NAME)
        return;
    ret->rcode = (enum net_rcode)rcode;
    ret->ttl_s = NET_TTL_MAX;
    if (records > RECORDS_MOST)
        records = RECORDS_MOST;
    char now[NET_NAME_SIZE];
    memcpy(now, name, strlen(name) + 1);
    bool is_there = ret->rcode == NET_RCODE_OK;
    for (unsigned i = 0; is_there && i < HOPS_MOST && reply_step(&p, at, records, type, now, ret);
         i++)
        ;
    if (ret->n == 0 && ret->ttl_s > NO_TTL_S)
        ret->ttl_s = NO_TTL_S;
}
