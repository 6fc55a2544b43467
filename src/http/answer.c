/* See answer.h. The head is kept until it is whole and then cut into fields, in place; bodies pass
 * through. framing.c reads chunks.
 *
 * SECURITY: whoever wrote the answer means harm. Whatever two readers could take for different
 * things is wrong: lines that end in a bare LF, folded lines, a name with blanks, control bytes,
 * two lengths, a length and chunks. Trailers are read and dropped. */

#include "http/answer.h"

#include "http/chars.h"

#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS 18

static void answer_is_wrong(struct answer *a, const char *why) {
    a->state = ANSWER_WRONG;
    a->wrong = why;
}

const char *answer_field(const struct answer *a, const char *name) {
    for (unsigned i = 0; i < a->nfields; i++) {
        if (strcasecmp(a->fields[i].name, name) == 0)
            return a->fields[i].value;
    }
    return NULL;
}

bool answer_lists(const struct answer *a, const char *name, const char *word) {
    for (unsigned i = 0; i < a->nfields; i++) {
        if (strcasecmp(a->fields[i].name, name) == 0 && char_lists(a->fields[i].value, word))
            return true;
    }
    return false;
}

/* ---- the head ---- */

/* "HTTP/1.1 200 OK", of which the words may be missing. */
static const char *read_status_line(struct answer *a, const char *line, size_t len) {
    if (len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '1' && line[7] != '0') ||
        line[8] != ' ' || (len > 12 && line[12] != ' '))
        return "it does not begin with HTTP/1.1, a status and a blank";
    a->is_1_0 = line[7] == '0';
    a->status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9')
            return "its status is no number";
        a->status = a->status * 10 + (line[i] - '0');
    }
    if (a->status < 100 || a->status > 599)
        return "its status is not from 100 to 599";
    return NULL;
}

/* "Name: value"; both are cut out of the line. */
static const char *read_field(struct answer *a, char *line, size_t len) {
    size_t name = 0;
    while (name < len && char_is_token(line[name]))
        name++;
    if (name == 0 || name == len || line[name] != ':')
        return "a header's name holds a byte that no name may hold, or its line is folded";
    if (a->nfields == ANSWER_FIELDS)
        return "it has more than 100 headers";
    char *value = line + name + 1, *end = line + len;
    line[name] = '\0';
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    a->fields[a->nfields++] = (struct answer_field){line, value};
    return NULL;
}

static const char *read_length(struct answer *a, const char *value) {
    size_t digits = strspn(value, "0123456789");
    if (a->length != ANSWER_LENGTH_NONE)
        return "it has two Content-Length headers";
    if (digits == 0 || digits > LENGTH_DIGITS || value[digits])
        return "its Content-Length is not a number, or one of more than 18 digits";
    a->length = 0;
    for (; *value; value++)
        a->length = a->length * 10 + (uint64_t)(*value - '0');
    return NULL;
}

static const char *read_encoding(struct answer *a, const char *value) {
    if (a->chunked)
        return "it has two Transfer-Encoding headers";
    if (a->is_1_0 || strcasecmp(value, "chunked") != 0)
        return "its Transfer-Encoding is not chunked, or it is of HTTP/1.0";
    a->chunked = true;
    return NULL;
}

/* What the fields say of the body. */
static const char *read_framing(struct answer *a) {
    const char *wrong = NULL;
    size_t listed = 0;
    for (unsigned i = 0; i < a->nfields && !wrong; i++) {
        const struct answer_field *f = &a->fields[i];
        if (strcasecmp(f->name, "content-length") == 0)
            wrong = read_length(a, f->value);
        else if (strcasecmp(f->name, "transfer-encoding") == 0)
            wrong = read_encoding(a, f->value);
        else if (strcasecmp(f->name, "connection") == 0 &&
                 (listed += strlen(f->value)) > ANSWER_LISTED)
            wrong = "its Connection headers have more than 1 KiB";
    }
    if (!wrong && a->chunked && a->length != ANSWER_LENGTH_NONE)
        wrong = "it has both Content-Length and Transfer-Encoding";
    return wrong;
}

static const char *read_lines(struct answer *a) {
    char *at = a->head.data;
    const char *wrong = NULL;
    a->nfields = 0;
    a->length = ANSWER_LENGTH_NONE;
    a->chunked = false;
    for (bool first = true; !wrong; first = false) {
        size_t len = 0;
        while (!char_is_control(at[len]))
            len++;
        if (at[len] != '\r' || at[len + 1] != '\n')
            return "a line holds a control byte, or does not end in CR LF";
        if (len == 0 && !first)
            return read_framing(a);
        wrong = first ? read_status_line(a, at, len) : read_field(a, at, len);
        at += len + 2;
    }
    return wrong;
}

static void body_begins(struct answer *a) {
    bool none = a->to_head || a->status == 204 || a->status == 304;
    a->state = none || a->length == 0 ? ANSWER_WHOLE : ANSWER_BODY;
    a->to_end = !a->chunked && a->length == ANSWER_LENGTH_NONE;
    a->left = a->length;
    a->chunks = (struct framing){.state = FRAMING_SIZE};
}

static void head_is_whole(struct answer *a) {
    const char *wrong = read_lines(a);
    if (wrong) {
        answer_is_wrong(a, wrong);
    } else if (a->status == 101) {
        if (!a->may_switch) {
            answer_is_wrong(a, "it switches to another protocol, which nobody asked for");
            return;
        }
        a->state = ANSWER_SWITCHED;
        a->on_head(a->arg, a);
    } else if (a->status < 200) { /* an interim one: the client has no use for it */
        a->interim += a->head.len;
        a->scanned = 0;
        buf_clear(&a->head);
    } else {
        body_begins(a);
        a->on_head(a->arg, a);
    }
}

/* The head ends with an empty line. */
static size_t add_head(struct answer *a, const char *data, size_t len) {
    size_t before = a->head.len, room = ANSWER_HEAD_MAX - a->interim - before;
    size_t n = len < room ? len : room;
    buf_add(&a->head, data, n);
    for (; a->scanned < a->head.len; a->scanned++) {
        const char *end = a->head.data + a->scanned;
        if (a->scanned < 3 || *end != '\n' || memcmp(end - 3, "\r\n\r\n", 4) != 0)
            continue;
        size_t used = ++a->scanned - before;
        a->head.len = a->scanned;
        head_is_whole(a);
        return used;
    }
    if (a->head.len + a->interim == ANSWER_HEAD_MAX)
        answer_is_wrong(a, "its head has more than 32 KiB");
    return n;
}

/* ---- the body ---- */

static size_t add_chunks(struct answer *a, const char *data, size_t len) {
    struct framing *f = &a->chunks;
    size_t n = 1;
    if (f->state == FRAMING_DATA) {
        n = f->left < len ? (size_t)f->left : len;
        a->on_data(a->arg, data, n);
    }
    framing_add(f, data, n);
    if (f->wrong)
        answer_is_wrong(a, f->wrong);
    else if (f->bodies)
        a->state = ANSWER_WHOLE;
    return n;
}

static size_t add_body(struct answer *a, const char *data, size_t len) {
    if (a->chunked)
        return add_chunks(a, data, len);
    size_t n = a->to_end || a->left > len ? len : (size_t)a->left;
    a->on_data(a->arg, data, n);
    if (!a->to_end && (a->left -= n) == 0)
        a->state = ANSWER_WHOLE;
    return n;
}

size_t answer_add(struct answer *a, const char *data, size_t len) {
    size_t at = 0;
    while (at < len && a->state <= ANSWER_BODY)
        at += a->state == ANSWER_HEAD ? add_head(a, data + at, len - at)
                                      : add_body(a, data + at, len - at);
    return at;
}

void answer_end(struct answer *a) {
    if (a->state == ANSWER_BODY && a->to_end)
        a->state = ANSWER_WHOLE;
    else if (a->state == ANSWER_HEAD)
        answer_is_wrong(a, "it ended before its head was whole");
    else if (a->state == ANSWER_BODY)
        answer_is_wrong(a, "it ended before its body was whole");
}

void answer_done(struct answer *a) {
    buf_done(&a->head);
    a->nfields = 0;
}
