#pragma once
/* The settings that are rules of the network: whether they can be read at all. */

#include "base/err.h"

struct config;

int rules_check(const struct config *c, struct err *e);
