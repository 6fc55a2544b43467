#pragma once
/* System calls whose own answer is about the machine, or out of reach of the sandbox's limits. */

#include "init/caller.h"

/* sysinfo(): `memory_mb` is the sandbox's limit. */
void answers_sysinfo(struct caller *c, uint32_t memory_mb);
/* memfd_create(): a file of `uid` on the sandbox's tmpfs. */
/* ioctl() of SIOCGIFCONF, SIOCGIFADDR and SIOCGIFNETMASK. */
void answers_interface(struct caller *c);
void answers_memfd(const struct caller *c, uint32_t uid);
