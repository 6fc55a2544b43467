/* See pax.h. A record is "LENGTH KEY=VALUE\n", and its length counts all of that.
 *
 * SECURITY: there may be as many records as somebody likes, each as long as somebody likes: the
 * work is linear in the bytes, and the memory is bounded. */

#include "pack/pax.h"

#include "pack/tar_header.h"

#define DIGITS_MAX 9

static void pax_record(struct pax *p) {
    p->state = PAX_LENGTH;
    p->left = 0;
    p->digits = 0;
    p->value = NULL;
}

void pax_begin(struct pax *p, struct tar_more *to) {
    p->to = to;
    pax_record(p);
}

static bool key_is(const struct pax *p, const char *name) {
    return strcmp(p->key, name) == 0;
}

/* Files with holes are written in six ways: "GNU.sparse." begins three of them. */
static bool is_sparse(const struct pax *p) {
    return strncmp(p->key, "GNU.sparse.", 11) == 0 || key_is(p, "SUN.holesdata");
}

static void choose(struct pax *p) {
    if (key_is(p, "path"))
        p->value = &p->to->path;
    else if (key_is(p, "linkpath"))
        p->value = &p->to->link;
    else if (key_is(p, "size") || key_is(p, "mtime"))
        p->value = &p->number;
    p->to->is_sparse = p->to->is_sparse || is_sparse(p);
    if (p->value) /* a record more of the same key takes the place of the one before */
        tar_text_clear(p->value);
    p->state = PAX_VALUE;
}

/* The digits at *at, which goes on behind them; -1 when there are too many. */
static int64_t read_digits(const char **at) {
    int64_t v = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **at - '0', &v))
            return -1;
    }
    return v;
}

static void take_size(struct pax *p) {
    const char *at = p->number.data;
    p->to->size = read_digits(&at);
    if (*at || at == p->number.data)
        p->to->size = -1;
    p->to->has_size = true;
}

/* Seconds and their fraction. A time that cannot be used is none. */
static void take_mtime(struct pax *p) {
    const char *at = p->number.data;
    int64_t seconds = read_digits(&at);
    uint64_t ns = 0;
    at += *at == '.';
    for (uint64_t unit = 100000000; unit && *at >= '0' && *at <= '9'; unit /= 10)
        ns += (uint64_t)(*at++ - '0') * unit;
    bool is_good = seconds > 0 && seconds < (int64_t)TAR_LATEST;
    p->to->mtime_ns = is_good ? (uint64_t)seconds * 1000000000u + ns : 0;
    p->to->has_mtime = true;
}

static bool read_length(struct pax *p, char c) {
    if (c == '\0' && p->digits == 0) /* some fill up their block within it */
        return true;
    if (c >= '0' && c <= '9') {
        p->left = p->left * 10 + (uint64_t)(c - '0');
        return ++p->digits <= DIGITS_MAX;
    }
    if (c != ' ' || p->digits == 0 || p->left <= p->digits + 1)
        return false;
    p->left -= p->digits + 1;
    p->state = PAX_KEY;
    p->key_len = 0;
    return true;
}

static bool read_key(struct pax *p, char c) {
    p->left--;
    if (c != '=' && p->key_len < sizeof p->key - 1)
        p->key[p->key_len++] = c;
    p->key[p->key_len] = '\0';
    if (c == '=')
        choose(p);
    return p->left > 0; /* its end of line is to come */
}

static bool end_record(struct pax *p, char c) {
    if (p->value == &p->number && key_is(p, "size"))
        take_size(p);
    else if (p->value == &p->number)
        take_mtime(p);
    pax_record(p);
    return c == '\n';
}

/* How many bytes were taken; 0 when it is none. */
static size_t read_value(struct pax *p, const char *data, size_t len) {
    if (p->left == 1)
        return end_record(p, *data) ? 1 : 0;
    size_t n = len < p->left - 1 ? len : (size_t)(p->left - 1);
    if (p->value)
        tar_text_add(p->value, data, n);
    p->left -= n;
    return n;
}

bool pax_read(struct pax *p, const void *data, size_t len) {
    for (const char *at = data, *end = at + len; at < end;) {
        size_t n = 1;
        if (p->state == PAX_VALUE)
            n = read_value(p, at, (size_t)(end - at));
        else if (!(p->state == PAX_LENGTH ? read_length(p, *at) : read_key(p, *at)))
            n = 0;
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

bool pax_end(const struct pax *p) {
    return p->state == PAX_LENGTH && p->digits == 0;
}
