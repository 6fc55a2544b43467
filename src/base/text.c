/* See text.h. */

#include "base/text.h"

#include "base/buf.h"

size_t text_char(const char *text, size_t left, uint32_t *ret) {
    static const struct {
        unsigned char first, mask;
        uint32_t least;
    } forms[] = {{0xc0, 0xe0, 0x80}, {0xe0, 0xf0, 0x800}, {0xf0, 0xf8, 0x10000}};
    const unsigned char *p = (const unsigned char *)text;
    *ret = *p;
    if (*p < 0x80)
        return 1;
    for (size_t i = 0; i < 3; i++) {
        if ((*p & forms[i].mask) != forms[i].first || left < i + 2)
            continue;
        uint32_t c = *p & (unsigned char)~forms[i].mask;
        for (size_t k = 1; k < i + 2; k++) {
            if ((p[k] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (p[k] & 0x3fu);
        }
        bool good = c >= forms[i].least && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        *ret = c;
        return good ? i + 2 : 0;
    }
    return 0;
}

void text_add_char(struct buf *to, uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    buf_addc(to, (char)(first[more] | c >> (6 * more)));
    while (more-- > 0)
        buf_addc(to, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

size_t text_chars(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

bool text_is_plain(uint32_t c) {
    static const struct {
        uint32_t first, last;
    } odd[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},
        {0x61c, 0x61c},     {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180e},
        {0x200b, 0x200f},   {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
        {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff},
    };
    if (c >= ' ' && c <= '~') /* nearly all of them */
        return true;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (c >= odd[i].first && c <= odd[i].last)
            return false;
    }
    return true;
}

void text_add_plain(struct buf *to, const char *text, size_t len) {
    for (const char *end = text + len; text < end;) {
        uint32_t c;
        const char *from = text;
        while (text < end && *text >= ' ' && *text <= '~')
            text++;
        buf_add(to, from, (size_t)(text - from));
        if (text == end)
            break;
        size_t n = text_char(text, (size_t)(end - text), &c);
        if (n == 0 || (n == 1 && !text_is_plain(c)))
            buf_addf(to, "\\x%02x", (unsigned char)*text);
        else if (text_is_plain(c))
            buf_add(to, text, n);
        else
            buf_addf(to, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
        text += n ? n : 1;
    }
}

#define YEAR_1     (-62135596800.0)
#define YEAR_10000 253402300800.0

static bool has_date(double seconds) { /* false too for what is no number */
    return seconds >= YEAR_1 && seconds < YEAR_10000;
}

bool text_date(double seconds, struct tm *ret) {
    const time_t t = has_date(seconds) ? (time_t)seconds : 0;
    return has_date(seconds) && gmtime_r(&t, ret);
}

bool text_date_here(double seconds, struct tm *ret) {
    const time_t t = has_date(seconds) ? (time_t)seconds : 0;
    return has_date(seconds) && localtime_r(&t, ret);
}
