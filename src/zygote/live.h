#pragma once
/* A kernel that stays: py/cell/live.py answers the server's requests, one after the other. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include "wire/codec.h"

#include <stdbool.h>

/* In the zygote: (live.main, live.rehearse), or None where kernels are for one program. -1 with a
 * Python exception if it is neither. */
int live_prepare(PyObject *from);
bool live_is_prepared(void);

/* open_loop(): the descriptors of the event loop in py/cell/tasks.py, for the zygote; live_main()
 * opens those of a kernel. */
PyObject *live_open_loop(PyObject *self, PyObject *none);

/* In a kernel that has nothing to do yet. */
void live_rehearse(void);

/* In the kernel: does as the K_LIVE in `in` says until the server is gone, and ends the process. */
_Noreturn void live_main(struct wire_in *in);
