#pragma once
/* The verbs of `cloche profile`. */

#include "base/err.h"
#include "profile/options.h"

int command_add(const struct profile_options *o, struct err *e);
int command_sync(const struct profile_options *o, struct err *e);
int command_remove(const struct profile_options *o, struct err *e);
int command_list(const struct profile_options *o, struct err *e);
int command_show(const struct profile_options *o, struct err *e);
int command_test(const struct profile_options *o, struct err *e);
