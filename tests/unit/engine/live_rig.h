#pragma once
/* A live sandbox over an engine without a machine: more words for scripts (rig.h).
 *
 *   live  cancel           somebody wants one; does not any more
 *   end  pause  thaw       what clients do to it
 *   hold  release          it is in use; not any more
 *   find                   says whether it is there: found, or the kind of the error
 *   kernel                 somebody wants one more kernel; the kernel at hand is the last one
 *   default                the kernel at hand is the default one
 *   restart-kernel  delete-kernel  interrupt  answer=TEXT     what clients do to that
 *   cell=NAME  drop=NAME   an execution in the kernel at hand; it is interrupted
 *   cells=N  brief=NAME    N more, of which nothing is said; one that has a second of time
 *   command=NAME  signal=N a command; a signal for the last one
 *   death                  the server dies, and the next one gets what was kept
 *   time=WHAT              time passes until a timer is due: life, cell, look (at the processor
 *                          time of the cell), retry (of the kernel), command, rest (of the
 *                          sandbox, from being heard)
 *
 * And those of rig_beside.h. What is said of it: ready or fail:KIND, ended:WHY, kernel:ready or
 * kernel:fail:KIND, died, back, dead and forgotten of kernels; NAME:EVENT, NAME:done:STATUS/LIMIT
 * and NAME:fail:KIND of executions and commands; again:NAME when the next server has one; rest,
 * short and idle as they begin. */

#include "rig.h"

/* Plays all, each on a new engine. */
void live_rig_play(const struct rig_case *cases, size_t n);

#define LIVE       "profile live made up "
#define LIVE_BEGUN "W_MAKE ready W_SHUT W_KEEP K_LIVE"
#define SAY_DONE   "say={\"ev\":\"done\",\"id\":\"CELL\",\"status\":\"ok\"} "
#define SAY_REPLY  "say={\"ev\":\"reply\",\"id\":\"ID\",\"ok\":true} "
