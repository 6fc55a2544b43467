#pragma once
/* What a program shows (RUN_SHOWN): py/cell/shown.py is the Python half. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include <stdint.h>

/* A function for Python: say_bytes(), and waits for the answer: what is printed next comes behind
 * it. In a child of the program it does nothing. */
PyObject *program_show(PyObject *self, PyObject *bytes);

/* Before the program. `flags` are those of K_RUN. */
void program_shown_begin(uint32_t flags);
/* The value of its last expression, which is borrowed; and the figures that it left open.
 * The exception of an object's own code that ended it, or None. */
PyObject *program_shown_value(PyObject *value);
PyObject *program_shown_end(uint32_t flags);
