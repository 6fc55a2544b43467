#pragma once
/* --apt: Debian packages, installed on the host by its own apt-get, because root asked for them on
 * the command line. Their maintainers' scripts run as root: nothing of it is in a sandbox. A
 * profile with --system-packages then sees what is below /usr of them. */

#include "base/err.h"

struct profile_options;

/* Whether it can be at all, before anything is done. */
int apt_check(const struct profile_options *o, struct err *e);
/* What apt-get says goes to stderr. Kind "build_failed" when it did not get there. */
int apt_install(const struct profile_options *o, struct err *e);
