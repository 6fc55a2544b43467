/* See http_head.h; RFC 9112. A connection is a row of heads, each followed by the body that it
 * announced; `state` says what the next byte that has not gone out belongs to. */

#include "net/http_head.h"

#include "net/rule.h"

#include <string.h>
#include <strings.h>

struct http_span {
    const char *at;
    size_t len;
};

static bool http_is(struct http_span s, const char *word) {
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool http_is_token(struct http_span s) {
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return s.len > 0;
}

/* Until the CRLF; false: there is none, or a byte that no line has. */
static bool http_line(struct http_span *from, struct http_span *ret) {
    size_t n = 0;
    while (n < from->len && from->at[n] != '\r') {
        unsigned char c = (unsigned char)from->at[n];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
        n++;
    }
    if (from->len - n < 2 || from->at[n + 1] != '\n')
        return false;
    *ret = (struct http_span){from->at, n};
    from->at += n + 2;
    from->len -= n + 2;
    return true;
}

static struct http_span http_trim(struct http_span s) {
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s.at++, s.len--;
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* ---- a head */

struct http_head {
    bool old; /* HTTP/1.0 */
    bool has_host, has_length, chunked;
    struct http_span authority; /* of "GET http://HOST/…"; at is NULL without */
    uint64_t length;
    char name[NET_NAME_SIZE];
};

/* HOST or HOST:PORT as a name in its one form, an address as it is written. */
static bool http_host(struct http_span s, char name[NET_NAME_SIZE]) {
    const char *bracket = s.len > 0 && s.at[0] == '[' ? memchr(s.at, ']', s.len) : NULL;
    size_t n = bracket != NULL ? (size_t)(bracket - s.at) + 1 : 0;
    struct net_addr a;
    while (bracket == NULL && n < s.len && s.at[n] != ':')
        n++;
    for (size_t i = n; i < s.len; i++)
        if (i == n ? s.at[i] != ':' : s.at[i] < '0' || s.at[i] > '9')
            return false;
    if (bracket != NULL ? !net_addr_parse(s.at + 1, n - 2, &a) : !net_addr_parse(s.at, n, &a))
        return net_name_clean(s.at, n, name) == NULL;
    memcpy(name, s.at, n);
    name[n] = '\0';
    return true;
}

/* METHOD TARGET HTTP/1.x, with single spaces. */
static bool http_request_line(struct http_span line, struct http_head *ret) {
    static const char path[] = "/?"; /* what ends the authority */
    const char *first = memchr(line.at, ' ', line.len);
    const char *last = memrchr(line.at, ' ', line.len);
    if (first == NULL || first == last)
        return false;
    struct http_span method = {line.at, (size_t)(first - line.at)};
    struct http_span target = {first + 1, (size_t)(last - first - 1)};
    struct http_span version = {last + 1, line.len - (size_t)(last + 1 - line.at)};
    if (!http_is_token(method) || http_is(method, "CONNECT") || version.len != 8 ||
        memcmp(version.at, "HTTP/1.", 7) != 0 || (version.at[7] != '0' && version.at[7] != '1'))
        return false;
    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.at[i] <= ' ' || target.at[i] == '#') /* no target has one */
            return false;
    ret->old = version.at[7] == '0';
    if (target.len >= 1 && (target.at[0] == '/' || http_is(target, "*")))
        return true;
    /* A server takes the host of an absolute target before that of the Host field. */
    if (target.len < 8 || strncasecmp(target.at, "http://", 7) != 0)
        return false;
    size_t n = 7;
    while (n < target.len && memchr(path, target.at[n], sizeof path - 1) == NULL)
        n++;
    ret->authority = (struct http_span){target.at + 7, n - 7};
    return true;
}

static bool http_length(struct http_span value, uint64_t *ret) {
    uint64_t n = 0;
    if (value.len == 0 || value.len > 18)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(value.at[i] - '0');
    }
    *ret = n;
    return true;
}

/* Whether some servers take `name` for `word`: they read '_' as '-'. */
static bool http_resembles(struct http_span name, const char *word) {
    if (name.len != strlen(word) || memchr(name.at, '_', name.len) == NULL)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((name.at[i] == '_' ? '-' : name.at[i] | 0x20) != word[i])
            return false;
    return true;
}

static bool http_field(struct http_span line, struct http_head *ret) {
    const char *colon = memchr(line.at, ':', line.len);
    if (colon == NULL)
        return false;
    struct http_span name = {line.at, (size_t)(colon - line.at)};
    struct http_span value = {colon + 1, line.len - name.len - 1};
    value = http_trim(value);
    /* A folded line begins with a space, which no token has; so does "Host :" have one. */
    if (!http_is_token(name) || http_resembles(name, "content-length") ||
        http_resembles(name, "transfer-encoding"))
        return false;
    if (http_is(name, "Host")) {
        if (ret->has_host || !http_host(value, ret->name))
            return false;
        ret->has_host = true;
    } else if (http_is(name, "Content-Length")) {
        if (ret->has_length || !http_length(value, &ret->length))
            return false;
        ret->has_length = true;
    } else if (http_is(name, "Transfer-Encoding")) {
        if (ret->chunked || !http_is(value, "chunked"))
            return false;
        ret->chunked = true;
    }
    return true;
}

/* All of it, with the empty line at its end. */
static bool http_parse(struct http_span head, struct http_head *ret) {
    struct http_span line;
    char other[NET_NAME_SIZE];
    memset(ret, 0, sizeof *ret);
    if (!http_line(&head, &line) || !http_request_line(line, ret))
        return false;
    while (head.len > 2)
        if (!http_line(&head, &line) || !http_field(line, ret))
            return false;
    if (!ret->has_host || (ret->chunked && (ret->has_length || ret->old)))
        return false;
    return ret->authority.at == NULL ||
           (http_host(ret->authority, other) && strcmp(other, ret->name) == 0);
}

/* ---- the connection */

static void http_pass(struct net_http *h, uint64_t n, enum net_http_state next) {
    h->state = NET_HTTP_PASS;
    h->left = n;
    h->next = next;
}

static enum net_heard look_at_head(struct net_http *h, const uint8_t *data, size_t len,
                                   struct net_looked *ret) {
    if (len > NET_HEAD_BYTES)
        len = NET_HEAD_BYTES;
    size_t from = h->looked < len ? h->looked : 0;
    const uint8_t *end = memmem(data + from, len - from, "\r\n\r\n", 4);
    struct http_head head;
    /* Whoever speaks something else here would wait for us, and we for the end of a head. */
    if (len > 0 && !http_is_token((struct http_span){(const char *)data, 1}))
        return NET_HEARD_BAD;
    if (end == NULL) {
        h->looked = len > 3 ? len - 3 : 0;
        ret->need = len + 1;
        return len == NET_HEAD_BYTES ? NET_HEARD_BAD : NET_HEARD_MORE;
    }
    h->head = (size_t)(end - data) + 4;
    if (!http_parse((struct http_span){(const char *)data, h->head}, &head))
        return NET_HEARD_BAD;
    h->chunked = head.chunked;
    h->length = head.length;
    memcpy(h->name, head.name, sizeof h->name);
    memcpy(ret->name, head.name, sizeof ret->name);
    if (!*h->allowed || strcmp(h->name, h->allowed) != 0)
        return NET_HEARD_NAME;
    net_http_allow(h);
    return NET_HEARD_MORE;
}

/* Digits and CRLF, no extensions: what stands in those, servers do not agree on. */
static enum net_heard look_at_size(struct net_http *h, const uint8_t *data, size_t len,
                                   struct net_looked *ret) {
    size_t n = 0;
    uint64_t size = 0;
    while (n < len && n < 16 && strchr("0123456789abcdefABCDEF", data[n]) && data[n] != '\0') {
        size = size << 4 | (uint64_t)(data[n] <= '9' ? data[n] - '0' : (data[n] | 0x20) - 'a' + 10);
        n++;
    }
    if (n == 16 || (n < len && (n == 0 || data[n] != '\r')) || (n + 1 < len && data[n + 1] != '\n'))
        return NET_HEARD_BAD;
    ret->need = len + 1;
    if (n + 1 < len)
        http_pass(h, n + 2 + size, size > 0 ? NET_HTTP_CRLF : NET_HTTP_END);
    return NET_HEARD_MORE;
}

/* Behind the last chunk, too: a field there could be taken for one of the head. */
static enum net_heard look_at_crlf(struct net_http *h, const uint8_t *data, size_t len,
                                   struct net_looked *ret) {
    if ((len >= 1 && data[0] != '\r') || (len >= 2 && data[1] != '\n'))
        return NET_HEARD_BAD;
    ret->need = 2;
    if (len >= 2)
        http_pass(h, 2, h->state == NET_HTTP_END ? NET_HTTP_HEAD : NET_HTTP_SIZE);
    return NET_HEARD_MORE;
}

void net_http_look(struct net_http *h, const uint8_t *data, size_t len, struct net_looked *ret) {
    memset(ret, 0, sizeof *ret);
    if (h->state == NET_HTTP_HEAD)
        ret->heard = look_at_head(h, data, len, ret);
    else if (h->state == NET_HTTP_SIZE)
        ret->heard = look_at_size(h, data, len, ret);
    else if (h->state != NET_HTTP_PASS)
        ret->heard = look_at_crlf(h, data, len, ret);
    if (h->state != NET_HTTP_PASS)
        return;
    ret->heard = NET_HEARD_MORE;
    ret->need = 1;
    ret->pass = h->left < len ? (size_t)h->left : len;
}

void net_http_allow(struct net_http *h) {
    memcpy(h->allowed, h->name, sizeof h->allowed);
    http_pass(h, h->head + h->length, h->chunked ? NET_HTTP_SIZE : NET_HTTP_HEAD);
    h->looked = 0;
}

void net_http_passed(struct net_http *h, size_t n) {
    h->left -= n < h->left ? n : h->left;
    if (h->state == NET_HTTP_PASS && h->left == 0)
        h->state = h->next;
}
