#pragma once
/* The body of an answer, into a file. */

#include <stdbool.h>
#include <stdint.h>

struct remote_sink;

struct download {
    int fd;        /* borrowed */
    uint64_t left; /* bytes that may still come */
    int failed;    /* the errno of writing; EFBIG: more came */
};

/* `d` lives as long as the sink. */
struct remote_sink download_sink(struct download *d);
