/* What makes a request ambiguous. Two servers that read the same bytes differently are how requests
 * are smuggled past a gateway; so whatever could be read in two ways is refused, and the connection
 * is closed. libmicrohttpd refuses bad request lines and headers that are too long by itself; what
 * it lets through is judged here, before anything else about the request. Chunks, and lengths that
 * are no numbers: http_read.c. */

#include "http/http_check.h"

#include "base/json.h"
#include "http/chars.h"
#include "http/internal.h"

#include <string.h>
#include <strings.h>

struct head {
    unsigned hosts, lengths, encodings;
    const char *wrong;
    const char *next; /* where the next line begins, if the last one ended as it should */
};

/* The library's strings stand in the buffer that the head was read into, one behind the other, each
 * CRLF replaced by two NULs. Bytes between them are those that it did not show: what follows a NUL,
 * a line that was folded into the one before, a line that it dropped; one byte less is a line that
 * ended in a bare LF. */
#define LINE_END 2

static bool is_token(const char *s, size_t len) {
    size_t i = 0;
    while (i < len && char_is_token(s[i]))
        i++;
    return len > 0 && i == len;
}

static bool has_control(const char *s, size_t len) {
    size_t i = 0;
    while (i < len && !char_is_control(s[i]))
        i++;
    return i < len;
}

static bool is_digits(const char *s, size_t len) {
    size_t i = 0;
    while (i < len && s[i] >= '0' && s[i] <= '9')
        i++;
    return len > 0 && len < 19 && i == len;
}

/* Whether the name is longer than `word` and begins with it. */
static bool only_begins(const char *name, size_t len, const char *word) {
    size_t n = strlen(word);
    return len > n && strncasecmp(name, word, n) == 0;
}

/* Blanks behind a value are none of it (RFC 9110, 5.5), but the library leaves them. */
static void cut_blanks(const char *value, size_t len) {
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        ((char *)(uintptr_t)value)[--len] = '\0';
}

static enum MHD_Result look_at_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                      size_t name_len, const char *value, size_t len) {
    struct head *h = arg;
    (void)kind;
    if (!value)
        value = name + name_len + 1;
    if (name != h->next)
        h->wrong = "a line is folded, holds a NUL or does not end in CR LF";
    else if (!is_token(name, name_len))
        h->wrong = "a header's name holds a byte that no name may hold";
    else if (has_control(value, len))
        h->wrong = "a header's value holds a control byte";
    else if (only_begins(name, name_len, "content-length") ||
             only_begins(name, name_len, "transfer-encoding"))
        h->wrong = "a header's name only begins like one that says where the body ends";
    else if (strcasecmp(name, "host") == 0)
        h->hosts++;
    else if (strcasecmp(name, "content-length") == 0) {
        h->lengths++;
        if (!is_digits(value, len))
            h->wrong = "Content-Length is not a number";
    } else if (strcasecmp(name, "transfer-encoding") == 0) {
        h->encodings++;
        if (len != 7 || strncasecmp(value, "chunked", 7) != 0)
            h->wrong = "Transfer-Encoding is not chunked";
    }
    cut_blanks(value, len);
    h->next = value + len + LINE_END;
    return h->wrong ? MHD_NO : MHD_YES;
}

/* Whether the head ends where the last line says. */
static bool ends_at(const struct http_req *r, const char *method, const char *end) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info && end == method + info->header_size;
}

static bool is_host(const struct http_req *r, const char *name) {
    const char *host = http_header(r, MHD_HTTP_HEADER_HOST);
    return host && strcasecmp(host, name) == 0;
}

const char *http_check_head(struct http_req *r, const char *method, const char *version) {
    struct head h = {.next = version + strlen(version) + LINE_END};
    if (r->uri != method + strlen(method) + 1 || version != r->uri + r->uri_len + 1)
        return "the request line holds a NUL or more than two spaces";
    MHD_get_connection_values_n(r->conn->mhd, MHD_HEADER_KIND, look_at_header, &h);
    if (h.wrong)
        return h.wrong;
    if (!ends_at(r, method, h.next + LINE_END))
        return "a line is folded, holds a NUL or does not end in CR LF";
    if (h.lengths > 1)
        return "there are two Content-Length headers";
    if (h.encodings > 1)
        return "there are two Transfer-Encoding headers";
    if (h.lengths && h.encodings)
        return "there are both Content-Length and Transfer-Encoding";
    if (h.hosts > 1)
        return "there are two Host headers";
    if (h.hosts == 0 && strcmp(version, "HTTP/1.0") != 0)
        return "there is no Host header";
    if (h.encodings && strcmp(version, "HTTP/1.0") == 0)
        return "HTTP/1.0 has no Transfer-Encoding";
    if (r->authority && !is_host(r, r->authority))
        return "the request line and the Host header name different hosts";
    return r->wrong;
}

const char *http_check_framing(const struct http_req *r) {
    const struct framing *f = &r->conn->framing;
    if (f->heads < r->conn->requests)
        return "the request's head does not end where it seems to";
    return f->heads == r->conn->requests ? f->wrong : NULL;
}

void http_error_write(const struct http_error *e, struct buf *out) {
    struct jw j = JW_INIT(out);
    jw_object(&j);
    jw_key(&j, "error");
    jw_object(&j);
    jw_key_str(&j, "code", e->code);
    jw_key_str(&j, "message", e->message);
    jw_key_str(&j, "remediation", e->remediation);
    jw_key_bool(&j, "retryable", e->retryable);
    jw_object_end(&j);
    jw_key_str(&j, "detail", e->detail);
    jw_object_end(&j);
}

void http_refusal(const char *wrong, struct buf *out) {
    const struct http_error e = {
        .code = "bad_request",
        .message = wrong,
        .remediation = "send a request that can be read in one way only",
        .detail = wrong,
    };
    http_error_write(&e, out);
}

bool http_decode(char *text, bool plus_is_space) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        int v = (unsigned char)*at;
        if (v == '%') {
            int a = char_hex(at[1]), b = a < 0 ? -1 : char_hex(at[2]);
            if (b < 0)
                return false;
            v = a * 16 + b;
            at += 2;
        } else if (v == '+' && plus_is_space) {
            v = ' ';
        }
        if (v < 32 || v == 127)
            return false;
        *to++ = (char)v;
    }
    *to = '\0';
    return true;
}
