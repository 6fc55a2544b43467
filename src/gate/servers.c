/* See servers.h. */

#include "gate/servers.h"

#include "base/num.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DNS_PORT  53
#define FILE_MOST 65536

static bool servers_add(struct servers *s, const struct net_addr *a, uint16_t port) {
    if (s->n == SERVERS_MOST)
        return false;
    s->at[s->n].address = *a;
    s->at[s->n++].port = port;
    return true;
}

static int parse_port(const char *text, size_t len, uint16_t *ret, struct err *e) {
    static const struct num_rule rule = {"network_resolvers: the port", 1, 65535};
    char copy[8];
    uint32_t port;
    if (len >= sizeof copy)
        return err_user(e, "bad_value", "network_resolvers: \"%.*s\" is no port", (int)len, text);
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (num_u32(copy, &rule, &port, e) < 0)
        return -1;
    *ret = (uint16_t)port;
    return 0;
}

/* One of the list. A colon belongs to a port unless there are two and no brackets. */
static int parse_one(const char *text, size_t len, struct servers *ret, struct err *e) {
    const char *address = text, *colon = memchr(text, ':', len);
    const char *bracket = text[0] == '[' ? memchr(text, ']', len) : NULL;
    size_t size = len;
    uint16_t port = DNS_PORT;
    struct net_addr a;
    if (bracket) {
        address = text + 1;
        size = (size_t)(bracket - address);
        colon = bracket + 1 < text + len ? bracket + 1 : NULL;
    } else if (colon && memchr(colon + 1, ':', len - (size_t)(colon + 1 - text))) {
        colon = NULL;
    } else if (colon) {
        size = (size_t)(colon - text);
    }
    if (!net_addr_parse(address, size, &a) || (colon && *colon != ':'))
        return err_user(e, "bad_value", "network_resolvers: \"%.*s\" is no ADDRESS or ADDRESS:PORT",
                        (int)len, text);
    if (colon && parse_port(colon + 1, len - (size_t)(colon + 1 - text), &port, e) < 0)
        return -1;
    return servers_add(ret, &a, port)
               ? 0
               : err_user(e, "bad_value", "network_resolvers: more than %d", SERVERS_MOST);
}

int servers_parse(const char *text, struct servers *ret, struct err *e) {
    for (const char *at = text; *at;) {
        at += strspn(at, ", ");
        size_t len = strcspn(at, ", ");
        if (len > 0 && parse_one(at, len, ret, e) < 0)
            return -1;
        at += len;
    }
    return 0;
}

static void read_line(const char *line, size_t len, struct servers *ret) {
    static const char word[] = "nameserver";
    static const char blank[] = " \t\r";
    struct net_addr a;
    size_t at = sizeof word - 1;
    if (len <= at || memcmp(line, word, at) != 0 || !strchr(blank, line[at]))
        return;
    while (at < len && strchr(blank, line[at]))
        at++;
    size_t end = at;
    while (end < len && !strchr(blank, line[end]))
        end++;
    if (net_addr_parse(line + at, end - at, &a))
        servers_add(ret, &a, DNS_PORT);
}

void servers_read(int fd, struct servers *ret) {
    char text[FILE_MOST];
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text, 0);
    for (const char *at = text, *end = text + (n > 0 ? n : 0); at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        read_line(at, (size_t)(stop - at), ret);
        at = stop + 1;
    }
}
