/* See program_cell.h. */

#include "zygote/program_cell.h"

#include "wire/run.h"

#include <stdbool.h>

struct program_cell program_cell;

int program_prepare(PyObject *from) {
    const struct {
        const char *name;
        PyObject **to;
    } parts[] = {
        {"main", &program_cell.main},
        {"path", &program_cell.path},
        {"modules", &program_cell.modules},
        {"rehearse", &program_cell.rehearse},
        {"compile", &program_cell.compile},
        {"split", &program_cell.split},
        {"print_last", &program_cell.print_last},
        {"restrict", &program_cell.restrict_},
        {"check", &program_cell.check},
        {"keep_figures", &program_cell.keep_figures},
        {"display", &program_cell.display},
        {"show_value", &program_cell.show_value},
        {"show_figures", &program_cell.show_figures},
        {"end_figures", &program_cell.end_figures},
        {"choose_formats", &program_cell.choose_formats},
        {"talk", &program_cell.talk},
        {"pyplot", &program_cell.pyplot},
        {"figures", &program_cell.figures},
        {"split_value", &program_cell.split_value},
        {"arguments", &program_cell.arguments},
        {"use_threads", &program_cell.use_threads},
        {"install", &program_cell.install},
        {"attach_tree", &program_cell.attach_tree},
        {"uncaught", &program_cell.uncaught},
        {"clear", &program_cell.clear},
        {"shutdown", &program_cell.shutdown},
        {"run_exitfuncs", &program_cell.run_exitfuncs},
        {"collect", &program_cell.collect},
        {"count_objects", &program_cell.count_objects},
        {"objects", &program_cell.objects},
        {"collector", &program_cell.collector},
        {"quiet", &program_cell.quiet},
        {"imported", &program_cell.imported},
        {"flush_files", &program_cell.flush_files},
        {"threading", &program_cell.threading},
        {"count_exitfuncs", &program_cell.count_exitfuncs},
        {"handler_begin", &program_cell.handler_begin},
        {"handler_end", &program_cell.handler_end},
        {"handler_complain", &program_cell.handler_complain},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].to = PyDict_GetItemString(from, parts[i].name);
        if (!*parts[i].to) {
            PyErr_SetString(PyExc_KeyError, parts[i].name);
            return -1;
        }
    }
    return 0;
}

void program_rehearse(void) {
    program_call_quietly(program_cell.rehearse, NULL);
}

void program_use_cpus(uint32_t percent) {
    if (percent < 200)
        return; /* they are used to one */
    PyObject *r = PyObject_CallFunction(program_cell.use_threads, "I", percent / 100);
    PyErr_Clear();
    Py_XDECREF(r);
}

void program_call_quietly(PyObject *function, PyObject *where) {
    PyObject *r = PyObject_CallObject(function, NULL);
    if (!r && where)
        PyErr_WriteUnraisable(where);
    PyErr_Clear();
    Py_XDECREF(r);
}

PyObject *program_caught(void) {
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    if (!type)
        Py_RETURN_NONE;
    PyErr_NormalizeException(&type, &value, &tb);
    if (tb)
        PyException_SetTraceback(value, tb);
    Py_XDECREF(type);
    Py_XDECREF(tb);
    return value;
}

/* False with the exception that says why it is refused. */
static bool is_allowed(PyObject *code) {
    PyObject *done = PyObject_CallFunctionObjArgs(program_cell.restrict_, code,
                                                  PyModule_GetDict(program_cell.main), NULL);
    Py_XDECREF(done);
    return done != NULL;
}

/* A program that looked plain and does not compile: what the policy says of that comes first. */
static void complain(PyObject *code) {
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyObject *done = PyObject_CallFunctionObjArgs(program_cell.check, code, NULL);
    if (done) {
        PyErr_Restore(type, value, tb);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(tb);
    }
    Py_XDECREF(done);
}

/* Without them the program is the same. */
static void keep_figures(void) {
    PyObject *done = PyObject_CallFunction(program_cell.keep_figures, "s", "/workspace");
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
}

static void drop_traceback(void) {
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    Py_XDECREF(tb);
    PyErr_Restore(type, value, NULL);
}

static PyObject *compile(PyObject *code, uint32_t flags) {
    if (flags & RUN_LAST_PRINT)
        return PyObject_CallFunctionObjArgs(program_cell.print_last, code, NULL);
    if (flags & RUN_VALUE)
        return PyObject_CallFunctionObjArgs(program_cell.split_value, code, NULL);
    if (flags & RUN_LAST_LINE)
        return PyObject_CallFunctionObjArgs(program_cell.split, code, NULL);
    return PyObject_CallFunction(program_cell.compile, "OOsii", code, program_cell.path, "exec", 0,
                                 1);
}

PyObject *program_compile(PyObject *code, uint32_t flags) {
    PyObject *parts = NULL;
    bool allowed = !(flags & RUN_RESTRICTED) || is_allowed(code);
    if (flags & RUN_FIGURES)
        keep_figures();
    if (allowed)
        parts = compile(code, flags);
    if (!parts && allowed && flags & RUN_RESTRICTED)
        complain(code);
    if (!parts)
        drop_traceback();
    return parts;
}
