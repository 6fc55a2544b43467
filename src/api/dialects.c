/* See dialects.h. One more is one line here. */

#include "api/dialects.h"

#include <stddef.h>

#define DIALECTS(X)                                                                                \
    X(code_interpreter)                                                                            \
    X(pyrunner)                                                                                    \
    X(ipybox)                                                                                      \
    X(jupyter)                                                                                     \
    X(runtime)

#define DECLARE(name) extern const struct dialect name##_dialect;
DIALECTS(DECLARE)

#define LIST(name) &name##_dialect,
const struct dialect *const dialects[] = {DIALECTS(LIST) NULL};
