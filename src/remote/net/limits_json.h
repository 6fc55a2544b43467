#pragma once
/* The limits that were asked for, as the server's API wants them. */

#include "wire/limits.h"

struct json_t;

/* Those that are not 0 and whose scope is among these, as members of `to`. */
void limits_json(const struct limits *l, unsigned scopes, struct json_t *to);
