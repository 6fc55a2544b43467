#pragma once
/* The fields that the bodies of several requests have, each described once: what differs is the
 * text for people. For the tables of fields of jobs/ and native/. */

#include "api/jobs/inputs.h"
#include "engine/core/bounds.h"

#include <stdint.h>

extern const char *const on_disconnect_words[]; /* interrupt, continue */
extern const char *const figure_formats[];      /* in the order of RUN_PNG and its followers */

#define FIELD_OF_PROFILE(text)                                                                     \
    { .name = "profile", .type = FIELD_STRING, .fallback = "\"auto\"", .help = (text) }
#define FIELD_OF_FILES(text)                                                                       \
    {                                                                                              \
        .name = "files", .type = FIELD_LIST, .of = &inputs_schema, .flags = FIELD_MAX,             \
        .max = INPUTS_MAX, .fallback = "[]", .help = (text)                                        \
    }
#define FIELD_OF_ENV(text)                                                                         \
    { .name = "env", .type = FIELD_MAP, .flags = FIELD_MAX, .max = RUN_MAX_ENV, .help = (text) }
#define FIELD_OF_CWD                                                                               \
    { .name = "cwd", .type = FIELD_STRING, .fallback = "\"/workspace\"" }
#define FIELD_OF_STDIN(text)                                                                       \
    {                                                                                              \
        .name = "stdin", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .fallback = "null",        \
        .help = (text)                                                                             \
    }
#define FIELD_OF_LIMITS(text)                                                                      \
    { .name = "limits", .type = FIELD_OBJECT, .of = &limits_schema, .help = (text) }
#define FIELD_OF_SECONDS(member, text)                                                             \
    {                                                                                              \
        .name = (member), .type = FIELD_INT, .flags = FIELD_MIN | FIELD_MAX, .min = 1,             \
        .max = INT32_MAX, .help = (text)                                                           \
    }
#define FIELD_OF_FORMATS                                                                           \
    {                                                                                              \
        .name = "formats", .type = FIELD_LIST, .words = figure_formats, .fallback = "[\"png\"]",   \
        .help = "of figures"                                                                       \
    }
#define FIELD_OF_KERNEL_ID                                                                         \
    {                                                                                              \
        .name = "kernel_id", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .fallback = "null",    \
        .help = "null: the default kernel"                                                         \
    }
#define FIELD_OF_ON_DISCONNECT(text)                                                               \
    {                                                                                              \
        .name = "on_disconnect", .type = FIELD_STRING, .words = on_disconnect_words,               \
        .fallback = "\"interrupt\"", .help = (text)                                                \
    }
