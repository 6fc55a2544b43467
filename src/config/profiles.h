#pragma once
/* Which profiles start, and what they are: the built-in ones, with what the configuration file
 * overrides and adds. */

#include "base/err.h"

#include <stddef.h>

struct config;
struct options;

/* Fills c->profiles, those for live kernels last; whatever is there on failure is config_done's to
 * free. */
int profiles_resolve(const struct options *o, struct config *c, struct err *e);

/* For a private engine: keeps the named profile, or for "auto" the first one and those that have a
 * module which occurs as a word in the code (generous: the engine chooses among them). One sandbox
 * and one zygote each. Fails when there is no such profile. */
int profiles_narrow(struct config *c, const char *name, const char *code, size_t len,
                    struct err *e);
