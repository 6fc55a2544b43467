#pragma once
/* cloche's own failures as the user sees them: one line on stderr that says what, why and what to
 * do, or with --json one object on stdout. Always exit status 125. */

#include "base/err.h"

#include <stdbool.h>

/* cloche's own failures, whatever the verb; a program's status passes through `run` as it is. */
#define EXIT_CLOCHE 125

struct failure {
    const char *kind, *message, *remediation; /* borrowed */
    bool retryable;
};

/* Both return EXIT_CLOCHE. The remediation and whether a retry may help follow from the kind. */
int report(const struct err *e, bool json);
int report_failure(const struct failure *f, bool json);

/* Whether --json is among the options: errors in earlier ones must come out as JSON too. */
bool report_wants_json(int argc, char **argv);

/* One line "cloche: …" on stderr, what is not plain text escaped. */
void report_say(const char *text);

/* What the server says about a result, a line each. A limit is named at the end of one as
 * the API calls it; here it gets the name of the flag. */
void report_notes(const char *lines);

/* An unknown verb; `of` is "" or "sandbox: ". `near` was offered all that there are. */
struct nearest;
int report_bad_verb(const char *of, const struct nearest *near, const char *all, struct err *e);
