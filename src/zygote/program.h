#pragma once
/* One program, run once in a kernel, as `python3 /workspace/__main__.py` would run it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include "wire/wire.h"

#include <stdbool.h>

/* In the zygote: remembers what oneshot.settle returned, so that nothing has to be looked up in a
 * kernel. -1 with a Python exception if something is missing. */
int program_prepare(PyObject *from);

/* In a kernel that has nothing to do yet. */
void program_rehearse(void);

/* In a kernel: libraries that start threads have that many processors. */
void program_use_cpus(uint32_t percent);

/* In the kernel: runs what the K_RUN in `in` asks for, says K_DONE, and ends the process. */
_Noreturn void program_main(struct wire_in *in, bool cgroups);
