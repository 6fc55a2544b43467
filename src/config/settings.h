#pragma once
/* The table of settings (settings.def) as data, for the command line: flags, variables, keys of the
 * file, help. The processes need only their values (config.h). */

#include <stddef.h>
#include <stdint.h>

enum setting_type {
    SETTING_PATH, /* made absolute */
    SETTING_TEXT,
    SETTING_CHOICE,  /* one of `words` */
    SETTING_LEVEL,   /* of the log */
    SETTING_SOME,    /* some of `words`, with commas between */
    SETTING_MODULES, /* names of Python modules, with commas between */
    SETTING_NAMES,   /* profiles, with commas between */
    SETTING_U32,
    SETTING_AUTO, /* the same, or "auto" */
    SETTING_U64,
    SETTING_CORES,  /* "1.5" is 150 percent */
    SETTING_SECRET, /* a text that is not shown */
    SETTING_ENV,    /* variables of an environment, as a JSON object */
    SETTING_RULES,  /* of the network: JSON, or words with commas between */
    SETTING_SETS,   /* of such rules by name, as a JSON object */
};

#define SETTING_NOWHERE ((size_t)-1)

struct setting {
    const char *name;
    enum setting_type type;
    uint64_t min, max;    /* of numbers; of cores in thousandths */
    const char *fallback; /* the default; NULL when it depends on the machine */
    const char *words;
    const char *variable; /* another service's, or NULL */
    size_t offset;        /* in struct config, or SETTING_NOWHERE */
    const char *help;
};

extern const struct setting settings[];
extern const size_t settings_count;

/* settings_count when there is none of that name. */
size_t setting_find(const char *name);
