/* See program_end.h. */

#include "zygote/program_end.h"

#include "zygote/program_cell.h"

#define MAIN_LOCKS 1 /* that the end of threads waits for: the main thread's (up to 3.12) */

static bool is_open(PyObject *stream) {
    PyObject *closed =
        stream && stream != Py_None ? PyObject_GetAttrString(stream, "closed") : NULL;
    int is = closed ? PyObject_IsTrue(closed) : 0;
    Py_XDECREF(closed);
    PyErr_Clear();
    return stream && stream != Py_None && is != 1;
}

/* False when a standard stream could not be flushed. */
static bool flush(void) {
    static const char *const names[] = {"stdout", "stderr"};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        PyObject *stream = PySys_GetObject(names[i]);
        if (!is_open(stream))
            continue;
        Py_INCREF(stream);
        PyObject *r = PyObject_CallMethod(stream, "flush", NULL);
        if (!r) {
            good = false;
            if (i == 0)
                PyErr_WriteUnraisable(stream);
            PyErr_Clear();
        }
        Py_XDECREF(r);
        Py_DECREF(stream);
    }
    return good;
}

/* Whether nobody notices its end. Looks without counting references: those are on pages that would
 * be copied. */
static bool is_quiet(PyObject *o) {
    Py_ssize_t n = PyTuple_Size(program_cell.quiet);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyTuple_GetItem(program_cell.quiet, i) == (PyObject *)Py_TYPE(o))
            return true;
    }
    return false;
}

static bool are_quiet(PyObject *objects) {
    Py_ssize_t n = objects ? PyList_Size(objects) : 0;
    bool all = objects != NULL;
    for (Py_ssize_t i = 0; all && i < n; i++)
        all = is_quiet(PyList_GetItem(objects, i));
    return all;
}

/* The older generations are empty: there are only a few hundred objects. */
static bool are_few(void) {
    PyObject *counts = PyObject_CallObject(program_cell.count_objects, NULL);
    bool few = counts && PyLong_AsLong(PyTuple_GetItem(counts, 1)) == 0 &&
               PyLong_AsLong(PyTuple_GetItem(counts, 2)) == 0;
    Py_XDECREF(counts);
    return few;
}

/* Whether the end of the program's objects would show: one that prints, writes what it holds, or
 * calls somebody. Those belong to a class, and all of such a class are known to the collector, or
 * the class is. */
static bool has_to_end_objects(void) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (PySys_GetObject("stdout") != PySys_GetObject("__stdout__") ||
        PySys_GetObject("stderr") != PySys_GetObject("__stderr__") || !are_few())
        return true;
    while (PyDict_Next(PyModule_GetDict(program_cell.main), &at, &name, &value)) {
        if (value == program_cell.collector) /* which may have hidden them */
            return true;
    }
    PyObject *objects = PyObject_CallObject(program_cell.objects, NULL);
    bool has = !are_quiet(objects);
    Py_XDECREF(objects);
    PyErr_Clear();
    return has;
}

/* Lets go of a module; what is to be looked at again if somebody still holds it. */
static PyObject *let_go(PyObject *module) {
    PyObject *held = PyWeakref_NewRef(module, NULL);
    Py_DECREF(module);
    PyErr_Clear(); /* no module at all, but something that was put in the place of one */
    return held;
}

/* Whether there was something. */
static bool clear_held(PyObject *held) {
    PyObject *module = held ? PyWeakref_GetObject(held) : Py_None;
    PyObject *space = PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    Py_XINCREF(space);
    PyObject *r = space ? PyObject_CallFunctionObjArgs(program_cell.clear, space, NULL) : NULL;
    Py_XDECREF(r);
    Py_XDECREF(space);
    PyErr_Clear();
    return space != NULL;
}

/* The end of the program's objects, and of those of modules that it brought: those that only they
 * held go first, with their globals intact, as the collector finds them; the globals of a module
 * that somebody still holds are cleared, the last first. The collector looks at all once before:
 * then it knows who holds whom, and ends a file before the descriptor below it. */
static void end_objects(void) {
    static const char *const last[] = {"last_type", "last_value", "last_traceback", "last_exc"};
    static const char *const streams[][2] = {
        {"stdin", "__stdin__"}, {"stdout", "__stdout__"}, {"stderr", "__stderr__"}};
    program_call_quietly(program_cell.collect, NULL);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        if (PySys_GetObject(last[i]))
            PySys_SetObject(last[i], NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        PyObject *first = PySys_GetObject(streams[i][1]);
        PySys_SetObject(streams[i][0], first ? first : Py_None);
    }
    PyObject *modules = PyObject_CallObject(program_cell.imported, NULL);
    Py_ssize_t n = modules ? PyList_Size(modules) : 0;
    PyErr_Clear();
    if (PyDict_GetItemString(program_cell.modules, "__main__"))
        PyDict_DelItemString(program_cell.modules, "__main__");
    PyObject *held = let_go(program_cell.main);
    for (Py_ssize_t i = n; i-- > 0;) {
        PyObject *module = PyList_GetItem(modules, i);
        Py_INCREF(module);
        PyList_SetItem(modules, i, NULL); /* ours is the last reference but for the program's */
        PyList_SetItem(modules, i, let_go(module));
    }
    program_call_quietly(program_cell.collect, NULL);
    bool more = false;
    for (Py_ssize_t i = 0; i < n; i++)
        more |= clear_held(PyList_GetItem(modules, i));
    more |= clear_held(held);
    if (more)
        program_call_quietly(program_cell.collect, NULL);
    program_call_quietly(program_cell.flush_files, NULL);
    PyErr_Clear();
}

/* Whether there is a thread to wait for, or a function that wants to know that there is none. */
static bool has_to_shut_down(void) {
    PyObject *locks = PyDict_GetItemString(program_cell.threading, "_shutdown_locks");
    PyObject *functions = PyDict_GetItemString(program_cell.threading, "_threading_atexits");
    PyObject *n = PyObject_CallObject(program_cell.count_exitfuncs, NULL);
    bool none = locks && PySet_Size(locks) == MAIN_LOCKS && functions &&
                PyList_Size(functions) == 0 && n && PyLong_AsLong(n) == 0;
    Py_XDECREF(n);
    PyErr_Clear();
    return !none;
}

bool program_end(void) {
    if (!has_to_shut_down() && !has_to_end_objects())
        return flush();
    program_call_quietly(program_cell.shutdown,
                         PyDict_GetItemString(program_cell.modules, "threading"));
    program_call_quietly(program_cell.run_exitfuncs, NULL);
    bool good = flush();
    end_objects();
    return flush() && good;
}
