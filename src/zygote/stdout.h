#pragma once
/* sys.stdout of a live kernel. What is printed waits for a few milliseconds, for more: a message
 * each for ten thousand lines would cost more than the lines. A thread of ours, which Python does
 * not know of, writes it then, whatever the interpreter does meanwhile. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

/* In a kernel that runs no user code yet. A tuple of functions for cell/live.py: write(bytes) for
 * stdout, write(bytes) for stderr, which has stdout written first and does not wait, flush(), and
 * write(str) for stdout. */
PyObject *stdout_begin(void);
