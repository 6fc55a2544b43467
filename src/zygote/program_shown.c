/* See program_shown.h. A program that has nothing to show calls no Python for that: what it might
 * need is there since the zygote, and is only named here. */

#include "zygote/program_shown.h"

#include "base/fd.h"
#include "wire/codec.h"
#include "wire/run.h"
#include "zygote/kernel.h"
#include "zygote/program_cell.h"
#include "zygote/say.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static pid_t program; /* the process that may say something; 0: none */

/* Signals are handled behind it: whoever was torn from this wait would speak out of turn. */
static bool hear_answer(struct wire_in *in) {
    struct pollfd p = {.fd = KERNEL_CTL_FD, .events = POLLIN};
    enum wire_got got;
    struct err e;
    Py_BEGIN_ALLOW_THREADS;
    do {
        poll(&p, 1, -1);
        got = wire_recv(KERNEL_CTL_FD, in, &e);
    } while (got == WIRE_NONE);
    Py_END_ALLOW_THREADS;
    wire_in_done(in);
    return got == WIRE_GOT;
}

PyObject *program_show(PyObject *self, PyObject *bytes) {
    if (getpid() != program)
        Py_RETURN_NONE;
    AUTO_FREE struct wire_in *in = calloc(1, sizeof *in);
    if (!in)
        return PyErr_NoMemory();
    PyObject *said = say_bytes(self, bytes);
    if (said && !hear_answer(in))
        PyErr_SetString(PyExc_OSError, "nobody listens");
    if (said && PyErr_Occurred())
        Py_CLEAR(said);
    return said;
}

static void choose_formats(uint32_t flags) {
    PyObject *r =
        PyObject_CallFunction(program_cell.choose_formats, "I", (flags & RUN_FORMATS) / RUN_PNG);
    Py_XDECREF(r);
}

void program_shown_begin(uint32_t flags) {
    if (!(flags & RUN_SHOWN))
        return;
    program = getpid();
    PyDict_SetItemString(PyModule_GetDict(program_cell.main), "display", program_cell.display);
    if (program_cell.pyplot != Py_None)
        PyObject_SetAttrString(program_cell.pyplot, "show", program_cell.show_figures);
    if ((flags & RUN_FORMATS) != RUN_PNG)
        choose_formats(flags);
    if (flags & RUN_ASKS)
        program_call_quietly(program_cell.talk, NULL);
    PyErr_Clear(); /* without them the program is the same */
}

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/* What it returns, or how it failed. */
static PyObject *call(PyObject *function, PyObject *value) {
    PyObject *exc = PyObject_CallFunctionObjArgs(function, value, NULL);
    return exc ? exc : program_caught();
}

PyObject *program_shown_value(PyObject *value) {
    return value == Py_None ? none() : call(program_cell.show_value, value);
}

/* pyplot's table of them, where it was there before the program. */
static bool has_figures(void) {
    if (program_cell.figures != Py_None)
        return PyDict_Size(program_cell.figures) > 0;
    return PyDict_GetItemString(program_cell.modules, "matplotlib.pyplot") != NULL;
}

PyObject *program_shown_end(uint32_t flags) {
    return flags & RUN_SHOWN && has_figures() ? call(program_cell.end_figures, NULL) : none();
}
