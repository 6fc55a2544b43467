#pragma once
/* Lines typed at a terminal, with editing, history and completion (libedit). Signals come through a
 * signalfd, so Ctrl-C is noticed here and not by a handler. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct editor;

struct editor_matches {
    char **items; /* owned */
    unsigned n;
    size_t replaces; /* characters before the cursor that each of them replaces */
};

struct editor_completion {
    void *arg;
    /* Of a line, up to the cursor. False: nothing can be found now. */
    bool (*find)(void *arg, const char *line, size_t len, struct editor_matches *ret);
};

enum editor_got { EDITOR_LINE, EDITOR_END, EDITOR_INTERRUPT, EDITOR_LEAVE };

/* `signals` is borrowed: a signalfd. `history_file` may be NULL. */
int editor_new(int signals, const struct editor_completion *c, const char *history_file,
               struct editor **ret, struct err *e);
/* Saves the history. */
void editor_free(struct editor *ed);
/* For the history: all that was run at once. */
void editor_remember(struct editor *ed, const char *text);
/* One line without its newline into `to`; a pasted one may have more newlines inside. `indent`
 * blanks are there already. EDITOR_LEAVE: *ret_signal says which signal wants it. */
enum editor_got editor_read(struct editor *ed, const char *prompt, unsigned indent, struct buf *to,
                            int *ret_signal);
