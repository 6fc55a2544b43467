/* See settings.h. How a name becomes a flag and a variable is in options.c. */

#include "config/settings.h"

#include "config/config.h"

#include <string.h>

/* The names of the dialects, for the setting that chooses among them. */
static const char words_behind_blanks[] =
#define DIALECT(name, directory) " " name
#include "config/settings.def"
    ;
static const char list_behind_commas[] =
#define DIALECT(name, directory) "," name
#include "config/settings.def"
    ;
#define dialect_words &words_behind_blanks[1]
#define dialect_list  &list_behind_commas[1]

#define TYPE_PATH           .type = SETTING_PATH
#define TYPE_TEXT           .type = SETTING_TEXT
#define TYPE_SECRET         .type = SETTING_SECRET
#define TYPE_ENV            .type = SETTING_ENV
#define TYPE_MODULES        .type = SETTING_MODULES
#define TYPE_RULES          .type = SETTING_RULES
#define TYPE_SETS           .type = SETTING_SETS
#define TYPE_NAMES          .type = SETTING_NAMES
#define TYPE_LEVEL          .type = SETTING_LEVEL
#define TYPE_CHOICE(words_) .type = SETTING_CHOICE, .words = words_
#define TYPE_SOME(words_)   .type = SETTING_SOME, .words = words_
#define TYPE_NUM(lo, hi)    .type = SETTING_U32, .min = lo, .max = hi
#define TYPE_MILLI(lo, hi)  .type = SETTING_U32, .min = lo, .max = hi
#define TYPE_AUTO(lo, hi)   .type = SETTING_AUTO, .min = lo, .max = hi
#define TYPE_LONG(lo, hi)   .type = SETTING_U64, .min = lo, .max = hi
#define TYPE_CORES(lo, hi)  .type = SETTING_CORES, .min = lo, .max = hi
#define UP_TO_NUM(lo, hi)   .type = SETTING_U32, .max = hi
#define UP_TO_MILLI(lo, hi) .type = SETTING_U32, .max = hi
#define UP_TO_LONG(lo, hi)  .type = SETTING_U64, .max = hi
#define UP_TO_CORES(lo, hi) .type = SETTING_CORES, .max = hi
#define AT(member)          .offset = offsetof(struct config, member)

/* The words of wire/limits.h, and what becomes of a limit in each struct limits of the table. */
#define NAMED(name_, flag, unit) name_
#define HELP(takes, help_)       help_
#define DEFAULT(value, other)    .fallback = value, .variable = other
#define MOST(value, other)       .fallback = value, .variable = other
#define LIVE(lo, value, help_)   .min = lo, .fallback = value, .help = help_
#define FURTHER_KERNELS          " of each further kernel in one, unless it asks; 0: all it has"
#define OF_KERNEL_CALL(...)
#define OF_KERNEL_CELL(...)
#define OF_KERNEL_SANDBOX(...)

/* clang-format off */
#define OF_defaults(member, type, scope, named, helped, usual, ...)                                \
    {.name = named, TYPE_##type, usual, .help = helped, AT(defaults.member)},
#define OF_maxima(member, type, scope, named, helped, usual, most, ...)                            \
    {.name = "max_" named, TYPE_##type, most, .help = "the most that a program may ask for",       \
     AT(maxima.member)},
#define OF_live(member, type, scope, named, helped, usual, most, live_)                            \
    {.name = "live_" named, UP_TO_##type, live_, AT(live.member)},
#define OF_live_kernel(member, type, scope, named, helped, ...)                                    \
    OF_KERNEL_##scope(member, type, named, helped)
#define OF_KERNEL_KERNEL(member, type, named, helped)                                              \
    {.name = "live_kernel_" named, UP_TO_##type, .fallback = "0",                                  \
     .help = helped FURTHER_KERNELS, AT(live_kernel.member)},

const struct setting settings[] = {
#define SETTING(reader, member, name_, type, value, other, help_)                                  \
    {.name = name_, TYPE_##type, .fallback = value, .variable = other, .help = help_, AT(IN member)},
#define ASKED(name_, type, value, other, help_)                                                    \
    {.name = name_, TYPE_##type, .fallback = value, .variable = other, .help = help_,              \
     .offset = SETTING_NOWHERE},
#define LIMITS_OF(reader, member) LIMITS(OF_##member)
#include "config/settings.def"
};
/* clang-format on */

const size_t settings_count = sizeof settings / sizeof *settings;

size_t setting_find(const char *name) {
    size_t i = 0;
    while (i < settings_count && strcmp(settings[i].name, name) != 0)
        i++;
    return i;
}
