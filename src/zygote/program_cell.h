#pragma once
/* What C has of py/cell/oneshot.py: the functions and objects that it calls and looks at, and the
 * ways in which it calls them. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include <stdint.h>

/* Borrowed from the cell, which lives as long as the zygote. */
extern struct program_cell {
    PyObject *main, *path, *modules;
    PyObject *rehearse, *compile, *split, *print_last, *restrict_, *check, *keep_figures,
        *arguments, *uncaught, *clear, *use_threads, *install, *attach_tree;
    PyObject *display, *show_value, *show_figures, *end_figures, *choose_formats, *talk,
        *split_value;
    PyObject *pyplot, *figures; /* None where pyplot is not preloaded */
    PyObject *threading, *shutdown, *count_exitfuncs, *run_exitfuncs, *collect;
    PyObject *count_objects, *objects, *collector, *quiet, *imported, *flush_files;
    PyObject *handler_begin, *handler_end, *handler_complain;
} program_cell;

/* In the zygote: remembers what oneshot.settle returned, so that nothing has to be looked up in a
 * kernel. -1 with a Python exception if something is missing. */
int program_prepare(PyObject *from);

/* In a kernel that has nothing to do yet. */
void program_rehearse(void);
/* In a kernel: libraries that start threads have that many processors. */
void program_use_cpus(uint32_t percent);

/* Whatever the function raises is dropped, unless `where` is given: then it is told there, as
 * Python tells what nobody can catch. */
void program_call_quietly(PyObject *function, PyObject *where);
/* The exception in flight as an object (None if there is none), with its traceback attached. */
PyObject *program_caught(void);
/* The code objects to execute, in their order; NULL with an exception that has no traceback: a
 * program that does not compile has no frames. `flags` are those of K_RUN. */
PyObject *program_compile(PyObject *code, uint32_t flags);
