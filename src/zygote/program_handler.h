#pragma once
/* A program with a handler (RUN_HANDLER): it defines a function, which is called with an event and
 * a context. py/cell/handler.py is the Python half. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include "wire/run.h"

struct program_handler {
    PyObject *event, *context; /* owned: bytes */
};

/* What was sent, cut at its NULs: `*code` becomes the program alone. -1 with an exception. */
int program_handler_cut(PyObject **code, struct program_handler *ret);
/* Executes the program and calls its handler; the exception that ended it, or None. */
PyObject *program_handler_run(PyObject *code, const struct program_handler *h,
                              struct done_msg *ret);
