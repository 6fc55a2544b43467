/* See log_line.h.
 *
 * A value that is not quoted ends where the next key begins, so that a text with blanks stays one.
 * A quoted one (log_quote: " and \ and control characters are \xNN) ends at a quote behind which a
 * key or nothing stands. SECURITY: whatever users control is quoted by the callers, so that no text
 * of theirs can look like the next key; here every byte is escaped again as the format wants it. */

#include "base/log_line.h"

#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TAIL 4 /* always left: a quote, a brace, the newline */

struct out {
    char *data;
    size_t len, cap;
    bool json;
    bool some; /* a pair is there already */
};

static bool put_text(struct out *o, const char *text, size_t len) {
    if (o->len + len + TAIL > o->cap)
        return false;
    memcpy(o->data + o->len, text, len);
    o->len += len;
    return true;
}

/* One byte of a \xNN, or -1. */
static int escaped(const char *p, size_t left) {
    static const char digits[] = "0123456789abcdef";
    if (left < 4 || p[0] != '\\' || p[1] != 'x')
        return -1;
    const char *high = strchr(digits, p[2]), *low = strchr(digits, p[3]);
    return high && low && *high && *low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static bool put_escape(struct out *o, unsigned c) {
    char text[8];
    if (o->json && (c == '"' || c == '\\'))
        snprintf(text, sizeof text, "\\%c", (char)c);
    else if (o->json)
        snprintf(text, sizeof text, "\\u%04x", c);
    else
        snprintf(text, sizeof text, "\\x%02x", c);
    return put_text(o, text, strlen(text));
}

/* A character that would not show as what it is: a log is read at terminals, too. */
static bool put_odd(struct out *o, const char *text, size_t len, uint32_t c) {
    char json[8];
    if (!o->json) {
        bool fits = true;
        for (size_t i = 0; i < len && fits; i++)
            fits = put_escape(o, (unsigned char)text[i]);
        return fits;
    }
    snprintf(json, sizeof json, "\\u%04x", c > 0xffff ? 0xfffdu : c);
    return put_text(o, json, 6);
}

/* In quotes. `quoted`: it holds \xNN, which logfmt keeps and JSON has its own form for. */
static void put_string(struct out *o, const char *text, size_t len, bool quoted) {
    bool fits = put_text(o, "\"", 1);
    for (size_t at = 0; at < len && fits;) {
        int code = quoted ? escaped(text + at, len - at) : -1;
        uint32_t point = 0;
        size_t n = code >= 0 ? 4 : text_char(text + at, len - at, &point);
        unsigned char c = code >= 0 ? (unsigned char)code : (unsigned char)text[at];
        if (n == 0)
            fits = o->json ? put_text(o, "\\ufffd", 6) : put_escape(o, c);
        else if (code >= 0x80) /* was no character of its own */
            fits = o->json ? put_text(o, "\\ufffd", 6) : put_escape(o, c);
        else if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            fits = put_escape(o, c);
        else if (code < 0 && !text_is_plain(point))
            fits = put_odd(o, text + at, n, point);
        else
            fits = code >= 0 ? put_text(o, (const char *)&c, 1) : put_text(o, text + at, n);
        at += n ? n : 1;
    }
    o->data[o->len++] = '"'; /* there is room: TAIL */
}

static bool is_number(const char *text, size_t len) {
    size_t at = len && *text == '-', digits = strspn(text + at, "0123456789");
    if (digits == 0 || digits > 15 || (digits > 1 && text[at] == '0'))
        return false;
    at += digits;
    if (at < len && text[at] == '.') {
        digits = strspn(text + at + 1, "0123456789");
        at += digits ? 1 + digits : 0;
    }
    return at == len;
}

/* Without quotes in logfmt: nothing that could be read in two ways. */
static bool is_bare(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f ||
            strchr("\"\\=", text[i]))
            return false;
    return len > 0;
}

struct piece {
    const char *text;
    size_t len;
    bool quoted;
};

static void put_pair(struct out *o, struct piece key, struct piece value) {
    size_t before = o->len;
    bool fits =
        put_text(o, o->json ? o->some ? ",\"" : "\"" : " ", o->json ? 1 + o->some : o->some) &&
        put_text(o, key.text, key.len) && put_text(o, o->json ? "\":" : "=", o->json ? 2 : 1) &&
        o->len + 8 < o->cap;
    if (!fits) {
        o->len = before;
        return;
    }
    bool bare = !value.quoted &&
                (o->json ? is_number(value.text, value.len) : is_bare(value.text, value.len));
    if (!bare)
        put_string(o, value.text, value.len, value.quoted);
    else if (!put_text(o, value.text, value.len)) {
        o->len = before;
        return;
    }
    o->some = true;
}

static struct piece piece(const char *text) {
    return (struct piece){text, strlen(text), false};
}

/* The length of "key=" at p, without the sign; 0 when there is none. */
static size_t key_at(const char *p) {
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return n && p[n] == '=' && (*p < '0' || *p > '9') ? n : 0;
}

/* Where the next " key=" begins, or the end. */
static const char *next_key(const char *p) {
    while (*p && !(*p == ' ' && key_at(p + 1)))
        p++;
    return p;
}

static struct piece take_value(const char **at) {
    const char *p = *at;
    if (*p == '"') {
        for (const char *q = p + 1; *q; q++) {
            if (*q == '"' && (q[1] == '\0' || (q[1] == ' ' && key_at(q + 2)))) {
                *at = q + 1;
                return (struct piece){p + 1, (size_t)(q - p - 1), true};
            }
        }
    }
    *at = next_key(p);
    return (struct piece){p, (size_t)(*at - p), false};
}

static void put_message(struct out *o, const char *message) {
    const char *at = key_at(message) ? message : next_key(message);
    put_pair(o, piece("msg"), (struct piece){message, (size_t)(at - message), false});
    while (*at) {
        at += *at == ' ';
        struct piece key = {at, key_at(at), false};
        at += key.len + 1;
        put_pair(o, key, take_value(&at));
    }
}

size_t log_line_write(const struct log_line *l, char *out, size_t cap) {
    struct out o = {.data = out, .cap = cap, .json = l->json};
    char pid[16];
    snprintf(pid, sizeof pid, "%d", l->pid);
    if (o.json)
        put_text(&o, "{", 1);
    put_pair(&o, piece("ts"), piece(l->ts));
    put_pair(&o, piece("level"), piece(l->level));
    put_pair(&o, piece("process"), piece(l->process));
    put_pair(&o, piece("pid"), piece(pid));
    put_message(&o, l->message);
    if (o.json)
        out[o.len++] = '}';
    out[o.len++] = '\n';
    return o.len;
}
