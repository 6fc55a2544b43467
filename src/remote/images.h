#pragma once
/* Figures at a terminal: inline where it can (kitty's and iTerm2's protocols), otherwise as files
 * whose paths are printed. */

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct json_t;

enum images_how { IMAGES_FILES, IMAGES_KITTY, IMAGES_ITERM, IMAGES_OFF };

struct images {
    enum images_how how;
    bool links;      /* the terminal is one: paths are made clickable */
    const char *dir; /* borrowed; NULL: a temporary one, made when it is needed */
    char *temporary; /* owned, or NULL */
    unsigned next;   /* number of the next file */
};

/* `word` is auto, inline, files, off or NULL for auto. */
void images_init(struct images *s, const char *word, const char *dir);
void images_done(struct images *s);
/* What stands for the image of a bundle {mime: data, …} goes to `to`. 1: there was one; 0: there is
 * none, or none is wanted. */
int images_show(struct images *s, const struct json_t *bundle, struct buf *to, struct err *e);
