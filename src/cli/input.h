#pragma once
/* What `run` takes from this machine: the program and its input files. */

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct input {
    int fd;        /* owned: a regular file or a memfd, at any position */
    char *path;    /* owned: below the workspace */
    uint32_t mode; /* permission bits */
};

/* HOST[:SANDBOX]. Without SANDBOX the file keeps its last name; SANDBOX is relative to /workspace
 * (or begins with it), and a slash at its end means: into that directory. A pipe or device is read
 * to its end into memory. */
int input_open(const char *spec, struct input *ret, struct err *e);
void input_done(struct input *i);

/* The program's text; "-" is stdin. */
int input_code(const char *path, struct buf *to, struct err *e);
