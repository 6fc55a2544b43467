/* See screen.h. The states are those of every terminal's parser (ECMA-48); a sequence is held back
 * until its last byte says what it is. A line break ends whatever has begun: a sequence without end
 * takes one line with it at the most. */

#include "cli/screen.h"

#include "base/buf.h"

#include <string.h>
#include <unistd.h>

enum { TEXT, ESCAPE, CHARSET, SKIP, SEQUENCE, STRING, STRING_ESCAPE, AFTER_C2 };

#define ESC '\033'

static bool is_break(char c) {
    return c == '\n' || c == '\r';
}

/* Moves, erases, scrolls, inserts, colours. Not: questions, which the terminal would answer as if
 * somebody typed, windows, keys, pointers. */
static bool is_harmless(const struct screen *s, char last) {
    static const char *const modes[] = {"?7", "?25", "?1049"}; /* wrapping, the cursor, a page */
    if (last == 'h' || last == 'l') {
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            if (strlen(modes[i]) == s->len && memcmp(modes[i], s->sequence, s->len) == 0)
                return true;
        }
        return false;
    }
    for (size_t i = 0; i < s->len; i++) {
        if (!strchr("0123456789;:", s->sequence[i]))
            return false;
    }
    return strchr("@ABCDEFGHJKLMPSTXZ`adefmsu", last) != NULL;
}

static void begin_control(struct screen *s, char c1) {
    s->len = 0;
    s->state = c1 == '[' ? SEQUENCE : strchr("]PX^_", c1) ? STRING : TEXT;
}

static void take_text(struct screen *s, struct buf *to, char c) {
    unsigned char u = (unsigned char)c;
    s->state = TEXT;
    if (u >= 0x80 && u < 0xc0) { /* the rest of a character; alone it is none, or a control */
        if (s->more > 0) {
            s->more--;
            buf_addc(to, c);
        }
        return;
    }
    s->more = 0;
    if (c == ESC)
        s->state = ESCAPE;
    else if (u == 0xc2)
        s->state = AFTER_C2;
    else if (u >= 0x20 ? u != 0x7f : u >= '\a' && u <= '\r') /* bells, tabs, ends of lines */
        buf_addc(to, c);
    if (u > 0xc2)
        s->more = u < 0xe0 ? 1 : u < 0xf0 ? 2 : 3;
}

/* U+0080 to U+009F are the same controls as ESC and a letter. */
static void take_after_c2(struct screen *s, struct buf *to, char c) {
    unsigned char u = (unsigned char)c;
    if (u >= 0x80 && u < 0xa0) {
        begin_control(s, (char)(u - 0x40));
    } else if (u >= 0xa0 && u < 0xc0) {
        s->state = TEXT;
        buf_addc(to, (char)0xc2);
        buf_addc(to, c);
    } else {
        take_text(s, to, c);
    }
}

static void take_escape(struct screen *s, struct buf *to, char c) {
    if (c == ESC)
        return;
    if (is_break(c) || (unsigned char)c >= 0x80) {
        take_text(s, to, c);
    } else if (c >= ' ' && c <= '/') {
        s->state = CHARSET;
    } else if (strchr("78DEM", c) && c) { /* keeps a place, goes back to it; moves a line */
        s->state = TEXT;
        buf_addc(to, ESC);
        buf_addc(to, c);
    } else {
        begin_control(s, c);
    }
}

static void take_sequence(struct screen *s, struct buf *to, char c) {
    if (c >= ' ' && c <= '?') {
        if (s->len == sizeof s->sequence)
            s->state = SKIP;
        else
            s->sequence[s->len++] = c;
        return;
    }
    if (c < '@' || c > '~') { /* no last byte: the sequence is broken off */
        take_text(s, to, c);
        return;
    }
    s->state = TEXT;
    if (!is_harmless(s, c))
        return;
    buf_adds(to, "\033[");
    buf_add(to, s->sequence, s->len);
    buf_addc(to, c);
}

/* Up to the last byte of what is left out. */
static void take_skipped(struct screen *s, struct buf *to, char c) {
    char before_last = s->state == CHARSET ? '/' : '?';
    if (is_break(c) || c == ESC)
        take_text(s, to, c);
    else if (c < ' ' || c > before_last)
        s->state = TEXT;
}

static void take_string(struct screen *s, struct buf *to, char c) {
    if (s->state == STRING_ESCAPE) {
        s->state = c == '\\' ? TEXT : ESCAPE;
        if (c != '\\')
            take_escape(s, to, c);
    } else if (c == ESC) {
        s->state = STRING_ESCAPE;
    } else if (is_break(c)) {
        take_text(s, to, c);
    } else if (c == '\a' || (unsigned char)c == 0x9c) {
        s->state = TEXT;
    }
}

void screen_filter(struct screen *s, struct buf *to, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (s->state == TEXT)
            take_text(s, to, c);
        else if (s->state == AFTER_C2)
            take_after_c2(s, to, c);
        else if (s->state == ESCAPE)
            take_escape(s, to, c);
        else if (s->state == SEQUENCE)
            take_sequence(s, to, c);
        else if (s->state == STRING || s->state == STRING_ESCAPE)
            take_string(s, to, c);
        else
            take_skipped(s, to, c);
    }
}

void screen_add(struct screen *s, int fd, struct buf *to, const char *text, size_t len) {
    if (!s->known)
        s->is_terminal = isatty(fd);
    s->known = true;
    if (s->is_terminal)
        screen_filter(s, to, text, len);
    else
        buf_add(to, text, len);
}
