/* See dns.h; RFC 1035. Whatever stands behind the question (EDNS) is not looked at: without an
 * answer to it a resolver takes us for an older server. */

#include "net/dns.h"

#include <string.h>

#define DNS_HEAD     12
#define DNS_CLASS_IN 1

static unsigned dns_u16(const uint8_t *at) {
    return (unsigned)at[0] << 8 | at[1];
}

static uint8_t *dns_put16(uint8_t *to, unsigned v) {
    to[0] = (uint8_t)(v >> 8);
    to[1] = (uint8_t)v;
    return to + 2;
}

/* The name at the packet's `at`; returns where it ends, or 0. No pointers: before a question there
 * is nothing that one could point to. A dot inside of a label would make one name of two. */
static size_t dns_read_name(const uint8_t *packet, size_t len, size_t at,
                            struct net_question *ret) {
    size_t begin = at, n = 0;
    while (at < len && packet[at] != 0) {
        size_t label = packet[at++];
        if (label > 63 || label > len - at || n + label + 1 >= NET_NAME_SIZE)
            return 0;
        if (n > 0)
            ret->name[n++] = '.';
        for (size_t i = 0; i < label; i++) {
            uint8_t c = packet[at + i];
            if (c <= ' ' || c >= 0x7f || c == '.' || c == '\\')
                return 0;
            ret->name[n++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        }
        at += label;
    }
    if (at >= len || at + 1 - begin > sizeof ret->wire)
        return 0;
    at++;
    ret->name[n] = '\0';
    ret->len = (uint8_t)(at - begin);
    memcpy(ret->wire, packet + begin, ret->len);
    return at;
}

bool net_dns_read(const uint8_t *packet, size_t len, struct net_question *ret) {
    memset(ret, 0, sizeof *ret);
    if (len < DNS_HEAD)
        return false;
    unsigned flags = dns_u16(packet + 2);
    unsigned questions = dns_u16(packet + 4), records = dns_u16(packet + 6) | dns_u16(packet + 8);
    /* A question (QR 0) of the standard kind (opcode 0), neither an answer nor cut (TC). */
    if ((flags & 0xfa00) != 0 || questions != 1 || records != 0)
        return false;
    size_t at = dns_read_name(packet, len, DNS_HEAD, ret);
    if (at == 0 || len - at < 4 || dns_u16(packet + at + 2) != DNS_CLASS_IN)
        return false;
    ret->id = (uint16_t)dns_u16(packet);
    ret->type = (uint16_t)dns_u16(packet + at);
    ret->recursion = (flags & 0x0100) != 0;
    return true;
}

size_t net_dns_reply(const struct net_question *q, enum net_rcode rcode, uint32_t ttl_s,
                     const struct net_addr *addresses, size_t n, uint8_t *to, size_t most) {
    /* QR, RA, and RD as it was. */
    unsigned flags = 0x8080 | (q->recursion ? 0x0100 : 0) | (unsigned)rcode, count = 0;
    size_t record = q->type == NET_DNS_A ? 16 : 28;
    uint8_t *p = dns_put16(to, q->id);
    p = dns_put16(p, flags);
    p = dns_put16(p, 1);
    uint8_t *counts = p;
    memset(p, 0, 6);
    memcpy(p + 6, q->wire, q->len);
    p = dns_put16(p + 6 + q->len, q->type);
    p = dns_put16(p, DNS_CLASS_IN);
    for (size_t i = 0; i < n && (q->type == NET_DNS_A || q->type == NET_DNS_AAAA); i++) {
        bool v4 = net_addr_is_v4(&addresses[i]);
        if (v4 != (q->type == NET_DNS_A) || most - (size_t)(p - to) < record)
            continue;
        p = dns_put16(p, 0xc000 | DNS_HEAD); /* the question's name */
        p = dns_put16(p, q->type);
        p = dns_put16(p, DNS_CLASS_IN);
        p = dns_put16(p, ttl_s >> 16);
        p = dns_put16(p, ttl_s & 0xffff);
        p = dns_put16(p, v4 ? 4 : 16);
        memcpy(p, addresses[i].b + (v4 ? 12 : 0), v4 ? 4 : 16);
        p += v4 ? 4 : 16;
        count++;
    }
    dns_put16(counts, count);
    return (size_t)(p - to);
}
