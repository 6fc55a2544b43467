/* See limits_json.h. */

#include "remote/net/limits_json.h"

#include <jansson.h>

void limits_json(const struct limits *l, unsigned scopes, json_t *to) {
    for (size_t i = 0; i < LIMITS_; i++) {
        uint64_t v = limits_value(l, i);
        if (!v || !(limits_info[i].scope & scopes))
            continue;
        json_object_set_new(to, limits_info[i].name,
                            limits_info[i].type == LIMIT_CORES ? json_real((double)v / 100)
                                                               : json_integer((json_int_t)v));
    }
}
