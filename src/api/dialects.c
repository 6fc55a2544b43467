/* See dialects.h. The list is config/dialects.def, from which the setting `dialects` comes too. */

#include "api/dialects.h"

#include <stddef.h>

#define DIALECT(name, directory) extern const struct dialect directory##_dialect;
#include "config/settings.def"

/* clang-format off */
const struct dialect *const dialects[] = {
#define DIALECT(name, directory) &directory##_dialect,
#include "config/settings.def"
    NULL,
};
/* clang-format on */
