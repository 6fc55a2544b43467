/* See notes.h. */

#include "remote/notes.h"

#include "base/buf.h"
#include "cli/run_options.h" /* RUN_FILES_CUT */

#include <jansson.h>
#include <string.h>

#define NOTES_MAX 50

static const char *text_of(const json_t *result, const char *key) {
    const char *text = json_string_value(json_object_get(result, key));
    return text ? text : "";
}

/* Such a limit ends what meets it; by what signal tells nobody anything then. */
static bool ends(const char *limit) {
    return strcmp(limit, "time") == 0 || strcmp(limit, "cpu") == 0 || strcmp(limit, "memory") == 0;
}

void notes_add(const json_t *result, bool with_files, struct buf *to) {
    const char *limit = text_of(result, "limit_hit");
    const json_t *list = json_object_get(result, "warnings");
    int signal = (int)json_integer_value(json_object_get(result, "signal"));
    if (strcmp(text_of(result, "status"), "killed") == 0 && signal > 0 && !ends(limit))
        buf_addf(to, "killed by signal %d (%s)\n", signal, strsignal(signal));
    for (size_t i = 0; i < json_array_size(list) && i < NOTES_MAX; i++) {
        const char *line = json_string_value(json_array_get(list, i));
        if (line && (with_files || strcmp(line, RUN_FILES_CUT) != 0))
            buf_addf(to, "%s\n", line);
    }
    if (*limit && json_array_size(list) == 0) /* a server of another version */
        buf_addf(to, "it met its limit: %s\n", limit);
}
