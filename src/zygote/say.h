#pragma once
/* What a kernel says to the server: K_SAY. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

/* Until the server's socket can be used, or there is something to read from `other` (-1: nobody);
 * -1 with an exception of a signal handler. */
int say_wait(short events, int other);
/* A function for Python: tells the server these bytes, all of them or, with an exception, none. */
PyObject *say_bytes(PyObject *self, PyObject *bytes);
