/* See program_handler.h. */

#include "zygote/program_handler.h"

#include "zygote/program_cell.h"

#include <string.h>

enum complaint { COMPLAIN_SYNTAX, COMPLAIN_NO_HANDLER, COMPLAIN_FAILED }; /* cell/handler.py */

int program_handler_cut(PyObject **code, struct program_handler *ret) {
    const char *at = PyBytes_AsString(*code), *end = at + PyBytes_Size(*code);
    PyObject *parts[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        const char *nul = i < 2 ? memchr(at, '\0', (size_t)(end - at)) : end;
        parts[i] = nul ? PyBytes_FromStringAndSize(at, nul - at) : NULL;
        if (!parts[i]) {
            PyErr_SetString(PyExc_ValueError, "a handler without event and context");
            return -1;
        }
        at = nul < end ? nul + 1 : end;
    }
    Py_DECREF(*code);
    *code = parts[0];
    *ret = (struct program_handler){parts[1], parts[2]};
    return 0;
}

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/* The exception in flight, told in a line. */
static PyObject *complain(enum complaint what) {
    PyObject *exc = program_caught();
    PyObject *r = PyObject_CallFunction(program_cell.handler_complain, "iO", (int)what, exc);
    PyErr_Clear();
    Py_XDECREF(r);
    return exc;
}

/* There is nothing to call: the line is all that is said. */
static PyObject *refuse_handler(enum complaint what, struct done_msg *ret) {
    Py_DECREF(complain(what));
    ret->how = DONE_EXIT;
    ret->exit_code = 1;
    return none();
}

static PyObject *call_handler(PyObject *call, struct done_msg *ret) {
    PyObject *value = PyObject_CallObject(PyTuple_GetItem(call, 0), PyTuple_GetItem(call, 1));
    if (!value)
        return program_caught();
    PyObject *json = PyObject_CallFunctionObjArgs(program_cell.handler_end, value, NULL);
    Py_DECREF(value);
    if (!json) {
        PyObject *exc = complain(COMPLAIN_FAILED);
        PyException_SetTraceback(exc, Py_None); /* it is all ours */
        return exc;
    }
    ret->result = PyBytes_AsString(json); /* which stays */
    ret->result_len = (size_t)PyBytes_Size(json);
    return none();
}

PyObject *program_handler_run(PyObject *code, const struct program_handler *h,
                              struct done_msg *ret) {
    PyObject *space = PyModule_GetDict(program_cell.main), *program = program_compile(code, 0);
    if (!program)
        return refuse_handler(COMPLAIN_SYNTAX, ret);
    PyObject *r = PyEval_EvalCode(program, space, space);
    Py_DECREF(program);
    if (!r)
        return complain(COMPLAIN_FAILED);
    Py_DECREF(r);
    PyObject *call =
        PyObject_CallFunctionObjArgs(program_cell.handler_begin, space, h->event, h->context, NULL);
    if (!call)
        return refuse_handler(COMPLAIN_NO_HANDLER, ret);
    PyObject *exc = call_handler(call, ret);
    Py_DECREF(call);
    return exc;
}
