#pragma once
/* The values of all settings (settings.h) as text: five places one can come from.
 *
 * A setting NAME is --NAME on the command line (with dashes), CLOCHE_NAME in the environment or in
 * the file .env beside the configuration file, "NAME" in the configuration file; some also have the
 * variable that users of other services already set. A flag beats the environment, that .env, that
 * the configuration file, that the default; each value remembers its origin. They are only text
 * until options_resolve (resolve.h) reads them all: whoever needs one path (`run`, looking for an
 * engine) does not stumble over another's bad number. */

#include "base/err.h"
#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct json_t;
struct options;

enum origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENV_FILE, ORIGIN_ENV, ORIGIN_FLAG };

struct option_value {
    char *text; /* owned; NULL until set */
    enum origin origin;
    char *from; /* owned: "--socket", "CLOCHE_SOCKET", "PORT in FILE", "default", the file's path */
    char *note; /* owned, or NULL */
};

struct options *options_new(void);
void options_free(struct options *o);
#define AUTO_OPTIONS __attribute__((cleanup(options_cleanup))) struct options *
static inline void options_cleanup(struct options **o) {
    options_free(*o);
}

/* A flag that is no setting, for options_parse. A verb's list ends with a NULL name. */
struct verb_flag {
    const char *name;
    bool *ret;
};

/* The command line of a verb that takes all settings as flags, --config FILE and `extra`; nothing
 * but flags may be there. */
int options_parse(struct options *o, int argc, char **argv, const struct verb_flag *extra,
                  struct err *e);
/* One flag, for verbs that take only some. `name` must be in the table, or be "config". */
int options_set_flag(struct options *o, const char *name, const char *text, struct err *e);
/* A value from the configuration file, as text; false if there is no such setting. */
bool options_set_file(struct options *o, const char *name, const char *text);
/* Environment, file and defaults, wherever no flag stands. */
int options_load(struct options *o, struct err *e);

const char *options_text(const struct options *o, const char *name);
enum origin options_origin(const struct options *o, const char *name);
/* The same with the setting's place in the table. */
const struct option_value *options_at(const struct options *o, size_t setting);
/* What was done to a value to make it fit: "raised to memory_mb". */
void options_note(struct options *o, size_t setting, const char *what, const char *other);
/* The file that was read, or NULL. */
const char *options_file(const struct options *o);
/* The file of variables beside it, or NULL; false: the caller may not read it. */
const char *options_env_file(const struct options *o, bool *ret_read);
/* What the file says on profiles, or NULL. The second takes over the reference. */
struct json_t *options_profiles(const struct options *o);
void options_set_profiles(struct options *o, struct json_t *profiles);

/* The table as help text, on stdout. */
void options_help(void);
