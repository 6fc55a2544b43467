/* See framing.h. One function per state takes one byte; bodies and the data of chunks are skipped
 * at once. SECURITY: what a proxy in front of us might read differently is refused: a line that
 * ends in a bare LF, blanks or signs around a size, control bytes in an extension, a trailer that
 * claims to say where the body ends, whom the request is for or who sends it. */

#include "http/framing.h"

#include "http/chars.h"

#include <string.h>

#define LENGTH_DIGITS 18u /* what 64 bits hold whatever they are, and ten times as much too */
#define SIZE_DIGITS   16u /* what 64 bits hold; more would be zeros, or an overflow somewhere */
#define EXTENSION_MAX 256u
#define TRAILERS_MAX  4096u

enum field { FIELD_NAME, FIELD_LENGTH, FIELD_OTHER };

static void line_begins(struct framing *f) {
    f->line = 0;
    f->field = FIELD_NAME;
}

static void request_begins(struct framing *f) {
    f->state = FRAMING_HEAD;
    f->chunked = false;
    f->left = 0;
    f->section = 0;
    f->last = '\0';
    line_begins(f);
}

static void size_begins(struct framing *f) {
    f->state = FRAMING_SIZE;
    f->left = 0;
    f->line = 0;
}

static void body_ends(struct framing *f) {
    f->bodies++;
    request_begins(f);
}

/* A byte of the line's name; false behind its end. */
static bool take_name(struct framing *f, char c) {
    if (f->field != FIELD_NAME)
        return false;
    if (f->line <= sizeof f->name)
        f->name[f->line - 1] = c == ':' ? '\0' : char_small(c);
    return true;
}

static bool is_named(const struct framing *f, const char *name) {
    return f->line <= sizeof f->name && strcmp(f->name, name) == 0;
}

/* ---- heads ---- */

static void head_ends(struct framing *f) {
    f->heads++;
    if (f->chunked)
        size_begins(f);
    else if (f->left > 0)
        f->state = FRAMING_BODY;
    else
        body_ends(f);
}

/* SECURITY: the library answers a bad length by itself, in HTML and with two heads. */
static void on_length(struct framing *f, char c) {
    bool is_digit = c >= '0' && c <= '9';
    if (is_digit && f->digits < LENGTH_DIGITS) {
        f->left = f->left * 10 + (uint64_t)(c - '0');
        f->digits++;
    } else if (c == '\r' && f->digits > 0) {
        f->field = FIELD_OTHER;
    } else if (f->digits > 0 || (c != ' ' && c != '\t')) {
        f->wrong = "Content-Length is not a number, or one of more than 18 digits";
        f->cut = true;
        f->heads++;
    }
}

static void head_field(struct framing *f, char c) {
    if (take_name(f, c)) {
        if (c != ':')
            return;
        f->field = is_named(f, "content-length") ? FIELD_LENGTH : FIELD_OTHER;
        f->chunked = f->chunked || is_named(f, "transfer-encoding");
        f->digits = 0;
    } else if (f->field == FIELD_LENGTH) {
        on_length(f, c);
    }
}

static void on_head(struct framing *f, char c) {
    bool ends = c == '\n' && f->last == '\r';
    bool before = f->last == '\0' && f->line == 0; /* no byte of the head was there yet */
    if (before && (c == '\r' || c == '\n'))
        return; /* empty lines before a request are none of it (RFC 9112, 2.2) */
    f->last = c;
    f->line++;
    if (ends && f->line == 2)
        head_ends(f);
    else if (ends)
        line_begins(f);
    else
        head_field(f, c);
}

/* ---- chunks ---- */

static void on_size(struct framing *f, char c) {
    int digit = char_hex(c);
    if (digit >= 0 && f->line < SIZE_DIGITS) {
        f->left = f->left * 16 + (uint64_t)digit;
        f->line++;
    } else if (digit >= 0) {
        f->wrong = "a chunk's size has more than 16 digits";
    } else if (f->line > 0 && c == '\r') {
        f->state = FRAMING_SIZE_LF;
    } else if (f->line > 0 && c == ';') {
        f->state = FRAMING_EXTENSION;
        f->line = 0;
    } else {
        f->wrong = "a chunk's size is no hexadecimal number that ends in CR LF";
    }
}

static void on_extension(struct framing *f, char c) {
    if (c == '\r')
        f->state = FRAMING_SIZE_LF;
    else if (char_is_control(c))
        f->wrong = "a chunk's extension holds a control byte or does not end in CR LF";
    else if (++f->line > EXTENSION_MAX)
        f->wrong = "a chunk's extension has more than 256 bytes";
}

static void on_size_lf(struct framing *f, char c) {
    if (c != '\n')
        f->wrong = "the line of a chunk's size does not end in CR LF";
    else if (f->left > 0)
        f->state = FRAMING_DATA;
    else {
        f->state = FRAMING_TRAILER;
        line_begins(f);
    }
}

static void on_data_cr(struct framing *f, char c) {
    if (c == '\r')
        f->state = FRAMING_DATA_LF;
    else
        f->wrong = "a chunk's data do not end in CR LF";
}

static void on_data_lf(struct framing *f, char c) {
    if (c == '\n')
        size_begins(f);
    else
        f->wrong = "a chunk's data do not end in CR LF";
}

/* ---- trailers ---- */

/* Fields that say how a request is to be read, where it goes and who sends it stand in its head
 * (RFC 9110, 6.5.1). We look at no trailer, but others may. */
static bool is_forbidden(const struct framing *f) {
    static const char *const names[] = {
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "max-forwards",
        "origin",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_named(f, names[i]))
            return true;
    }
    return false;
}

static void trailer_field(struct framing *f, char c) {
    f->line++;
    bool named = take_name(f, c);
    if (char_is_control(c))
        f->wrong = "a trailer holds a control byte or does not end in CR LF";
    else if (named && c == ':') {
        f->field = FIELD_OTHER;
        if (f->line == 1)
            f->wrong = "a trailer has no name";
        else if (is_forbidden(f))
            f->wrong = "a trailer has a name that only the head may have";
    } else if (named && !char_is_token(c))
        f->wrong = "a trailer's name holds a byte that no name may hold";
}

static void on_trailer(struct framing *f, char c) {
    if (++f->section > TRAILERS_MAX)
        f->wrong = "the trailers have more than 4096 bytes";
    else if (c != '\r')
        trailer_field(f, c);
    else if (f->line > 0 && f->field == FIELD_NAME)
        f->wrong = "a trailer has no colon";
    else
        f->state = FRAMING_TRAILER_LF;
}

static void on_trailer_lf(struct framing *f, char c) {
    if (c != '\n') {
        f->wrong = "a trailer does not end in CR LF";
    } else if (f->line == 0) {
        body_ends(f);
    } else {
        f->state = FRAMING_TRAILER;
        line_begins(f);
    }
}

/* ---- the connection ---- */

/* Skips what is known to be no line: the number of bytes. */
static size_t skip(struct framing *f, size_t len) {
    size_t n = f->left < len ? (size_t)f->left : len;
    f->left -= n;
    if (f->left > 0)
        return n;
    if (f->state == FRAMING_BODY)
        body_ends(f);
    else
        f->state = FRAMING_DATA_CR;
    return n;
}

size_t framing_add(struct framing *f, const char *data, size_t len) {
    static void (*const take[FRAMING_STATES_])(struct framing * f, char c) = {
        [FRAMING_HEAD] = on_head,           [FRAMING_SIZE] = on_size,
        [FRAMING_EXTENSION] = on_extension, [FRAMING_SIZE_LF] = on_size_lf,
        [FRAMING_DATA_CR] = on_data_cr,     [FRAMING_DATA_LF] = on_data_lf,
        [FRAMING_TRAILER] = on_trailer,     [FRAMING_TRAILER_LF] = on_trailer_lf,
    };
    size_t at = 0;
    while (at < len && !f->wrong) {
        if (f->state == FRAMING_BODY || f->state == FRAMING_DATA) {
            at += skip(f, len - at);
            continue;
        }
        take[f->state](f, data[at]);
        at += !f->wrong;
    }
    return at;
}
