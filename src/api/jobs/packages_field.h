#pragma once
/* What a program wants installed before it runs: the field `packages`. */

#include "api/jobs/oneshot.h"

struct problem;
struct run_request;

#define PACKAGES_MAX 64
#define FIELD_OF_PACKAGES                                                                          \
    {                                                                                              \
        .name = "packages", .type = FIELD_LIST, .flags = FIELD_MAX, .max = PACKAGES_MAX,           \
        .fallback = "[]",                                                                          \
        .help = "installed by pip before the program runs, as \"polars\" or \"rich>=13\": from "   \
                "where `network` lets it, or the operator's wheels. It takes of the program's "    \
                "time, whose default is then 60 s"                                                 \
    }

/* Adds the body's packages to the request, and the limits that installing wants where the body
 * names none. After its env and limits. */
int packages_read(const struct caller *who, const json_t *body, struct run_request *q,
                  struct problem *p);
