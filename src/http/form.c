/* See form.h.
 *
 * The content of a part ends at CR LF, two dashes and the boundary. A form that begins with its
 * first boundary is read as if there were a CR LF before it; so what stands before the first
 * boundary is the content of a part that nobody sees.
 *
 * Clients do not agree on how a part's head is written: names come in quotes or as bare words (as
 * .NET does it), with or without escapes, and names of files in other characters as they are or as
 * filename* (RFC 5987). All of that is taken. */

#include "http/form.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BOUNDARY_MAX 200   /* RFC 2046 says 70 */
#define BLANKS_MAX   64    /* behind a boundary */
#define HEAD_MAX     16384 /* bytes of a part's head */

enum form_state { FORM_BEFORE, FORM_HEAD, FORM_CONTENT, FORM_WHOLE, FORM_OVER };

struct form {
    enum form_state state;
    form_fn *fn;
    void *arg;
    struct buf mark;       /* CR LF, two dashes, the boundary */
    struct buf in;         /* what has come and is still needed */
    size_t at;             /* what is read of it, while more is */
    size_t looked;         /* how much of a head has no end in it */
    char *name, *filename; /* owned: of the part at hand */
};

/* ---- heads ---- */

struct word {
    const char *at;
    size_t len;
};

static bool is_word(const struct word *w, const char *text) {
    return w->len == strlen(text) && strncasecmp(w->at, text, w->len) == 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* A value in quotes, from behind the first one; of escapes there are two, for browsers send the
 * backslashes of a name as they are. Returns where it ends. */
static const char *read_quoted(const char *at, const char *end, struct buf *to) {
    for (; at < end && *at != '"'; at++) {
        if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
            at++;
        buf_addc(to, *at);
    }
    return at < end ? at + 1 : end;
}

static const char *read_bare(const char *at, const char *end, struct buf *to) {
    const char *from = at;
    while (at < end && *at != ';')
        at++;
    size_t len = (size_t)(at - from);
    while (len > 0 && is_blank(from[len - 1]))
        len--;
    buf_add(to, from, len);
    return at;
}

/* The next NAME=VALUE behind a semicolon; false when there is none. */
static bool next_param(const char **at, const char *end, struct word *ret_name, struct buf *value) {
    const char *c = *at;
    while (c < end && (is_blank(*c) || *c == ';'))
        c++;
    *ret_name = (struct word){c, 0};
    while (c < end && *c != '=' && *c != ';')
        c++;
    ret_name->len = (size_t)(c - ret_name->at);
    while (ret_name->len > 0 && is_blank(ret_name->at[ret_name->len - 1]))
        ret_name->len--;
    buf_clear(value);
    if (c < end && *c == '=') {
        for (c++; c < end && is_blank(*c); c++)
            ;
        c = c < end && *c == '"' ? read_quoted(c + 1, end, value) : read_bare(c, end, value);
        while (c < end && *c != ';')
            c++;
    }
    *at = c;
    return ret_name->len > 0;
}

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* UTF-8'LANGUAGE'TEXT with escapes of three characters; NULL when it is something else. */
static char *read_extended(const char *text) {
    const char *at = strchr(text, '\'');
    at = at ? strchr(at + 1, '\'') : NULL;
    if (!at || strncasecmp(text, "utf-8'", 6) != 0)
        return NULL;
    AUTO_BUF to = BUF_INIT;
    for (at++; *at; at++) {
        int a = *at == '%' ? hex(at[1]) : -1, b = a < 0 ? -1 : hex(at[2]);
        if (*at == '%' && (b < 0 || a + b == 0))
            return NULL;
        buf_addc(&to, *at == '%' ? (char)(a * 16 + b) : *at);
        at += *at == '%' ? 2 : 0;
    }
    return buf_take(&to);
}

static void set(char **to, char *text) {
    free(*to);
    *to = text;
}

static void read_disposition(struct form *f, const char *at, const char *end) {
    AUTO_BUF value = BUF_INIT;
    char *extended = NULL;
    struct word name;
    while (at < end && *at != ';')
        at++;
    while (next_param(&at, end, &name, &value)) {
        if (is_word(&name, "name"))
            set(&f->name, xstrdup(value.data));
        else if (is_word(&name, "filename"))
            set(&f->filename, xstrdup(value.data));
        else if (is_word(&name, "filename*"))
            set(&extended, read_extended(value.data));
    }
    if (extended)
        set(&f->filename, extended);
}

static void read_head(struct form *f, const char *at, const char *end) {
    static const char wanted[] = "content-disposition:";
    const size_t len = sizeof wanted - 1;
    set(&f->name, xstrdup(""));
    set(&f->filename, NULL);
    while (at < end) {
        const char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
        const char *line_end = line ? line : end;
        if ((size_t)(line_end - at) > len && strncasecmp(at, wanted, len) == 0)
            read_disposition(f, at + len, line_end);
        at = line ? line + 2 : end;
    }
}

/* ---- parts ---- */

static void tell_part(struct form *f, const char *data, size_t len, bool first) {
    const struct form_part p = {f->name, f->filename, data, len, first};
    if (f->state == FORM_CONTENT && (len > 0 || first) && !f->fn(f->arg, &p))
        f->state = FORM_OVER;
}

/* False when more has to come first. */
static bool take_head(struct form *f) {
    const char *in = f->in.data + f->at;
    size_t len = f->in.len - f->at, most = len < HEAD_MAX ? len : HEAD_MAX;
    /* The CR LF of the boundary is still there: an empty head is two of them. */
    size_t from = f->looked > 3 ? f->looked - 3 : 0;
    const char *end = memmem(in + from, most - from, "\r\n\r\n", 4);
    f->looked = end ? 0 : most;
    if (!end) {
        if (len >= HEAD_MAX)
            f->state = FORM_OVER;
        return false;
    }
    read_head(f, in, end);
    f->at += (size_t)(end - in) + 4;
    f->state = FORM_CONTENT;
    tell_part(f, "", 0, true);
    return true;
}

enum mark { MARK_PART, MARK_LAST, MARK_NONE, MARK_UNKNOWN };

/* What stands behind a boundary; *ret_blanks: how many before the end of its line. */
static enum mark look_behind(const char *behind, size_t len, size_t *ret_blanks) {
    size_t n = 0;
    if (len >= 2 && behind[0] == '-' && behind[1] == '-')
        return MARK_LAST;
    if (len == 1 && behind[0] == '-')
        return MARK_UNKNOWN;
    while (n < len && n < BLANKS_MAX && is_blank(behind[n]))
        n++;
    *ret_blanks = n;
    if (n == len || (n + 1 == len && behind[n] == '\r'))
        return MARK_UNKNOWN;
    return behind[n] == '\r' && behind[n + 1] == '\n' ? MARK_PART : MARK_NONE;
}

/* Passes on what no boundary can begin in. False when more has to come first. */
static bool take_content(struct form *f) {
    const char *in = f->in.data + f->at;
    size_t len = f->in.len - f->at, keep = f->mark.len - 1, blanks = 0;
    const char *mark = memmem(in, len, f->mark.data, f->mark.len);
    size_t n = mark ? (size_t)(mark - in) : len > keep ? len - keep : 0;
    enum mark what = MARK_UNKNOWN;
    if (mark)
        what = look_behind(mark + f->mark.len, len - n - f->mark.len, &blanks);
    if (what == MARK_NONE)
        n += f->mark.len; /* it only begins like one */
    f->at += n + (what == MARK_PART ? f->mark.len + blanks : 0);
    tell_part(f, in, n, false);
    if (f->state == FORM_OVER)
        return false;
    if (what == MARK_PART)
        f->state = FORM_HEAD;
    if (what == MARK_LAST)
        f->state = FORM_WHOLE;
    return what != MARK_UNKNOWN;
}

static bool goes_on(const struct form *f) {
    return f->state != FORM_WHOLE && f->state != FORM_OVER;
}

void form_add(struct form *f, const char *data, size_t len) {
    bool more = goes_on(f); /* whatever follows is nobody's */
    if (more)
        buf_add(&f->in, data, len);
    while (more && goes_on(f))
        more = f->state == FORM_HEAD ? take_head(f) : take_content(f);
    buf_drop(&f->in, f->at);
    f->at = 0;
}

bool form_is_whole(const struct form *f) {
    return f->state == FORM_WHOLE;
}

struct form *form_new(const char *content_type, form_fn *fn, void *arg) {
    static const char kind[] = "multipart/form-data";
    AUTO_BUF value = BUF_INIT;
    struct word name;
    if (!content_type || strncasecmp(content_type, kind, sizeof kind - 1) != 0)
        return NULL;
    const char *at = content_type + sizeof kind - 1, *end = at + strlen(at);
    while (next_param(&at, end, &name, &value) && !is_word(&name, "boundary"))
        ;
    if (!is_word(&name, "boundary") || value.len == 0 || value.len > BOUNDARY_MAX)
        return NULL;
    struct form *f = xcalloc(1, sizeof *f);
    *f = (struct form){.fn = fn, .arg = arg, .mark = BUF_INIT, .in = BUF_INIT};
    buf_addf(&f->mark, "\r\n--%s", value.data);
    buf_adds(&f->in, "\r\n");
    return f;
}

void form_free(struct form *f) {
    if (!f)
        return;
    buf_done(&f->mark);
    buf_done(&f->in);
    free(f->name);
    free(f->filename);
    free(f);
}
