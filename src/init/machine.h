#pragma once
/* The memory of the machine that the kernel has taken and lists nowhere; see machine.c. */

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

/* Zero: it cannot be known. */
struct machine {
    int meminfo, zones; /* owned */
    FILE *zones_text;   /* owned */
    uint64_t kept;      /* bytes that processors kept to allocate from, when that was looked at */
    unsigned looks;
    uint64_t total; /* bytes */
};

enum { MACHINE_FILES = 2 };
/* In the nursery, for all its inits. A kernel that hides one of the files (-1) is no error. */
void machine_open(int files[MACHINE_FILES]);
/* In an init, which inherited them. */
void machine_begin(struct machine *m, const int files[MACHINE_FILES]);
/* Bytes; quick, and wrong by as much as `kept` has changed in a few of these looks. */
uint64_t machine_unlisted_about(struct machine *m);
/* A close look. */
uint64_t machine_unlisted(struct machine *m);

/* For tests: of the text of /proc/meminfo, which sets *ret_total. */
uint64_t machine_unlisted_of(const char *text, uint64_t *ret_total);
