#pragma once
/* Bytes that every kernel gets anew: the states of random generators, and secrets that were made in
 * the zygote. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

/* In a kernel: new bytes for all that were named. */
void secrets_renew(void);

/* For Python, in the zygote. Each is False where the bytes cannot be written in place. */
PyObject *secrets_numpy_state(PyObject *self, PyObject *address);
PyObject *secrets_python_state(PyObject *self, PyObject *args);
PyObject *secrets_bytes_state(PyObject *self, PyObject *bytes);
