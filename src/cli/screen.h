#pragma once
/* What a program prints, on its way to a terminal. SECURITY: the program is nobody's friend, and a
 * terminal obeys: it can be made to fill the clipboard (OSC 52), to type answers into the shell, to
 * change its title or its keys. Text, colours and movements of the cursor pass; the rest is left
 * out. Where the output is no terminal, nothing is changed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* One for each stream; all zero: nothing was printed yet. */
struct screen {
    uint8_t state;
    bool known, is_terminal;
    uint8_t more; /* bytes that a character of UTF-8 still has to come */
    uint8_t len;
    char sequence[32]; /* the parameters of one that has not ended yet */
};

/* Appends to `to` what of this may be written to fd. */
void screen_add(struct screen *s, int fd, struct buf *to, const char *text, size_t len);
/* The same where it is known what fd is. */
void screen_filter(struct screen *s, struct buf *to, const char *text, size_t len);
