/* See program.h.
 *
 * User code runs with no Python frame of ours below it, so what plain Python does around a script
 * is repeated here step by step: compiling, the report of an uncaught exception, waiting for
 * threads, exit functions, the flush of the standard streams, and the end of the script's own
 * objects. What can be made once is made in the zygote, `__main__` included (oneshot.settle); and
 * what is simple is C, because every Python statement writes to pages that a kernel then has to
 * copy. What is seldom needed is Python: an uncaught exception is the business of a generator
 * (oneshot.uncaught), whose steps are called from here while it is suspended, and so invisible. */

#include "zygote/program.h"

#include "base/clock.h"
#include "base/fd.h"
#include "wire/run.h"
#include "zygote/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH       "/workspace/__main__.py"
#define MAIN_LOCKS 1   /* that the end of threads waits for: the main thread's (up to 3.12) */
#define NO_FLUSH   120 /* plain Python's status when a standard stream could not be flushed */

/* Borrowed from the cell, which lives as long as the zygote. */
static struct {
    PyObject *main, *path, *modules;
    PyObject *rehearse, *compile, *split, *print_last, *restrict_, *keep_figures, *arguments,
        *uncaught, *clear, *use_threads;
    PyObject *threading, *shutdown, *count_exitfuncs, *run_exitfuncs, *collect;
    PyObject *count_objects, *objects, *collector, *quiet, *imported, *flush_files;
    PyObject *handler_begin, *handler_end, *handler_complain;
} cell;

int program_prepare(PyObject *from) {
    const struct {
        const char *name;
        PyObject **to;
    } parts[] = {
        {"main", &cell.main},
        {"path", &cell.path},
        {"modules", &cell.modules},
        {"rehearse", &cell.rehearse},
        {"compile", &cell.compile},
        {"split", &cell.split},
        {"print_last", &cell.print_last},
        {"restrict", &cell.restrict_},
        {"keep_figures", &cell.keep_figures},
        {"arguments", &cell.arguments},
        {"use_threads", &cell.use_threads},
        {"uncaught", &cell.uncaught},
        {"clear", &cell.clear},
        {"shutdown", &cell.shutdown},
        {"run_exitfuncs", &cell.run_exitfuncs},
        {"collect", &cell.collect},
        {"count_objects", &cell.count_objects},
        {"objects", &cell.objects},
        {"collector", &cell.collector},
        {"quiet", &cell.quiet},
        {"imported", &cell.imported},
        {"flush_files", &cell.flush_files},
        {"threading", &cell.threading},
        {"count_exitfuncs", &cell.count_exitfuncs},
        {"handler_begin", &cell.handler_begin},
        {"handler_end", &cell.handler_end},
        {"handler_complain", &cell.handler_complain},
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

static PyObject *string_list(const char *const *items, uint32_t n) {
    PyObject *list = PyList_New(n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *s = PyUnicode_DecodeFSDefault(items[i]);
        if (!s) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, s);
    }
    return list;
}

/* The code as bytes, from the message or from its descriptor. */
static PyObject *code_bytes(const struct run_msg *r) {
    if (r->code_fd < 0)
        return PyBytes_FromStringAndSize((const char *)r->code, (Py_ssize_t)r->code_len);
    struct stat st;
    if (fstat(r->code_fd, &st) < 0 || st.st_size > RUN_MAX_CODE)
        return PyErr_SetFromErrno(PyExc_OSError);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, st.st_size);
    char *to = bytes ? PyBytes_AsString(bytes) : NULL;
    if (to && pread(r->code_fd, to, (size_t)st.st_size, 0) != st.st_size) {
        Py_DECREF(bytes);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    close(r->code_fd);
    return bytes;
}

/* Whatever it raises is dropped, unless `where` is to be told as Python tells what nobody can
 * catch.
 */
static void call_quietly(PyObject *function, PyObject *where) {
    PyObject *r = PyObject_CallObject(function, NULL);
    if (!r && where)
        PyErr_WriteUnraisable(where);
    PyErr_Clear();
    Py_XDECREF(r);
}

/* The program's file; -1 with a Python exception. */
static int place(PyObject *code) {
    int fd = open(PATH, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0644);
    const char *from = PyBytes_AsString(code);
    size_t left = (size_t)PyBytes_Size(code);
    while (fd >= 0 && left > 0) {
        ssize_t n = write(fd, from, left);
        if (n < 0) {
            close(fd);
            fd = -1;
        } else {
            from += n;
            left -= (size_t)n;
        }
    }
    if (fd < 0) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, PATH);
        return -1;
    }
    close(fd);
    return 0;
}

void program_use_cpus(uint32_t percent) {
    if (percent < 200)
        return; /* they are used to one */
    PyObject *r = PyObject_CallFunction(cell.use_threads, "I", percent / 100);
    PyErr_Clear();
    Py_XDECREF(r);
}

static int set_arguments(const struct run_msg *r) {
    if (r->nargs == 0 && r->nenv == 0)
        return 0; /* sys.argv is as the zygote made it */
    PyObject *args = string_list(r->args, r->nargs), *env = string_list(r->env, r->nenv);
    PyObject *done =
        args && env ? PyObject_CallFunctionObjArgs(cell.arguments, args, env, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(env);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* The exception in flight as an object (None if there is none), with its traceback attached. */
static PyObject *caught(void) {
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

/* Calls what the generator yields until it yields an outcome: a tuple whose first item is None. */
static PyObject *drive(PyObject *steps) {
    PyObject *item = PyObject_CallMethod(steps, "send", "O", Py_None);
    while (item && PyTuple_Check(item) && PyTuple_GetItem(item, 0) != Py_None) {
        PyObject *result = PyObject_CallObject(PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1));
        PyObject *exc = caught();
        Py_DECREF(item);
        Py_XDECREF(result);
        item = PyObject_CallMethod(steps, "send", "O", exc);
        Py_DECREF(exc);
    }
    return item;
}

/* False with the exception that says why it is refused. */
static bool is_allowed(PyObject *code) {
    PyObject *done =
        PyObject_CallFunctionObjArgs(cell.restrict_, code, PyModule_GetDict(cell.main), NULL);
    Py_XDECREF(done);
    return done != NULL;
}

/* Without them the program is the same. */
static void keep_figures(void) {
    PyObject *done = PyObject_CallFunction(cell.keep_figures, "s", "/workspace");
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

/* The code objects to execute, in their order; NULL with an exception that has no traceback: a
 * program that does not compile has no frames. */
static PyObject *compiled(PyObject *code, uint32_t flags) {
    PyObject *parts = NULL;
    if (flags & RUN_FIGURES)
        keep_figures();
    if (flags & RUN_RESTRICTED && !is_allowed(code))
        ;
    else if (flags & RUN_LAST_PRINT)
        parts = PyObject_CallFunctionObjArgs(cell.print_last, code, NULL);
    else if (flags & RUN_LAST_LINE)
        parts = PyObject_CallFunctionObjArgs(cell.split, code, NULL);
    else
        parts = PyObject_CallFunction(cell.compile, "OOsii", code, cell.path, "exec", 0, 1);
    if (!parts)
        drop_traceback();
    return parts;
}

/* Executes the program; the exception that ended it, or None. */
static PyObject *execute(PyObject *code, uint32_t flags) {
    PyObject *parts = compiled(code, flags), *space = PyModule_GetDict(cell.main);
    if (!parts)
        return caught();
    Py_ssize_t n = PyTuple_Check(parts) ? PyTuple_Size(parts) : 1;
    PyObject *exc = Py_None;
    Py_INCREF(exc);
    for (Py_ssize_t i = 0; i < n && exc == Py_None; i++) {
        PyObject *part = PyTuple_Check(parts) ? PyTuple_GetItem(parts, i) : parts;
        PyObject *r = PyEval_EvalCode(part, space, space);
        Py_XDECREF(r);
        Py_DECREF(exc);
        exc = caught();
    }
    Py_DECREF(parts);
    return exc;
}

/* ---- a program with a handler (RUN_HANDLER) ---- */

enum complaint { COMPLAIN_SYNTAX, COMPLAIN_NO_HANDLER, COMPLAIN_FAILED }; /* cell/handler.py */

struct handler {
    PyObject *event, *context; /* owned: bytes */
};

/* What was sent, cut at its NULs: `*code` becomes the program alone. */
static int cut_parts(PyObject **code, struct handler *ret) {
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
    *ret = (struct handler){parts[1], parts[2]};
    return 0;
}

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/* The exception in flight, told in a line. */
static PyObject *complain(enum complaint what) {
    PyObject *exc = caught();
    PyObject *r = PyObject_CallFunction(cell.handler_complain, "iO", (int)what, exc);
    PyErr_Clear();
    Py_XDECREF(r);
    return exc;
}

/* There is nothing to call: the line is all that is said. */
static PyObject *refuse(enum complaint what, struct done_msg *ret) {
    Py_DECREF(complain(what));
    ret->how = DONE_EXIT;
    ret->exit_code = 1;
    return none();
}

static PyObject *call_handler(PyObject *call, struct done_msg *ret) {
    PyObject *value = PyObject_CallObject(PyTuple_GetItem(call, 0), PyTuple_GetItem(call, 1));
    if (!value)
        return caught();
    PyObject *json = PyObject_CallFunctionObjArgs(cell.handler_end, value, NULL);
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

/* As execute. */
static PyObject *handle(PyObject *code, const struct handler *h, struct done_msg *ret) {
    PyObject *space = PyModule_GetDict(cell.main), *program = compiled(code, 0);
    if (!program)
        return refuse(COMPLAIN_SYNTAX, ret);
    PyObject *r = PyEval_EvalCode(program, space, space);
    Py_DECREF(program);
    if (!r)
        return complain(COMPLAIN_FAILED);
    Py_DECREF(r);
    PyObject *call =
        PyObject_CallFunctionObjArgs(cell.handler_begin, space, h->event, h->context, NULL);
    if (!call)
        return refuse(COMPLAIN_NO_HANDLER, ret);
    PyObject *exc = call_handler(call, ret);
    Py_DECREF(call);
    return exc;
}

/* ---- its end ---- */

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
    Py_ssize_t n = PyTuple_Size(cell.quiet);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyTuple_GetItem(cell.quiet, i) == (PyObject *)Py_TYPE(o))
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
    PyObject *counts = PyObject_CallObject(cell.count_objects, NULL);
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
    while (PyDict_Next(PyModule_GetDict(cell.main), &at, &name, &value)) {
        if (value == cell.collector) /* which may have hidden them */
            return true;
    }
    PyObject *objects = PyObject_CallObject(cell.objects, NULL);
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
    PyObject *r = space ? PyObject_CallFunctionObjArgs(cell.clear, space, NULL) : NULL;
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
    call_quietly(cell.collect, NULL);
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        if (PySys_GetObject(last[i]))
            PySys_SetObject(last[i], NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        PyObject *first = PySys_GetObject(streams[i][1]);
        PySys_SetObject(streams[i][0], first ? first : Py_None);
    }
    PyObject *modules = PyObject_CallObject(cell.imported, NULL);
    Py_ssize_t n = modules ? PyList_Size(modules) : 0;
    PyErr_Clear();
    if (PyDict_GetItemString(cell.modules, "__main__"))
        PyDict_DelItemString(cell.modules, "__main__");
    PyObject *held = let_go(cell.main);
    for (Py_ssize_t i = n; i-- > 0;) {
        PyObject *module = PyList_GetItem(modules, i);
        Py_INCREF(module);
        PyList_SetItem(modules, i, NULL); /* ours is the last reference but for the program's */
        PyList_SetItem(modules, i, let_go(module));
    }
    call_quietly(cell.collect, NULL);
    bool more = false;
    for (Py_ssize_t i = 0; i < n; i++)
        more |= clear_held(PyList_GetItem(modules, i));
    more |= clear_held(held);
    if (more)
        call_quietly(cell.collect, NULL);
    call_quietly(cell.flush_files, NULL);
    PyErr_Clear();
}

/* Whether there is a thread to wait for, or a function that wants to know that there is none. */
static bool has_to_shut_down(void) {
    PyObject *locks = PyDict_GetItemString(cell.threading, "_shutdown_locks");
    PyObject *functions = PyDict_GetItemString(cell.threading, "_threading_atexits");
    PyObject *n = PyObject_CallObject(cell.count_exitfuncs, NULL);
    bool none = locks && PySet_Size(locks) == MAIN_LOCKS && functions &&
                PyList_Size(functions) == 0 && n && PyLong_AsLong(n) == 0;
    Py_XDECREF(n);
    PyErr_Clear();
    return !none;
}

/* What plain Python does after the last statement; false when something could not be flushed. After
 * most programs nobody would notice, and it would be fifty pages copied for nothing. */
static bool finish(void) {
    if (!has_to_shut_down() && !has_to_end_objects())
        return flush();
    call_quietly(cell.shutdown, PyDict_GetItemString(cell.modules, "threading"));
    call_quietly(cell.run_exitfuncs, NULL);
    bool good = flush();
    end_objects();
    return flush() && good;
}

static const char *text_of(PyObject *outcome, Py_ssize_t at) {
    PyObject *o = PyTuple_GetItem(outcome, at);
    const char *s = o && PyBytes_Check(o) ? PyBytes_AsString(o) : NULL;
    if (!s)
        PyErr_Clear();
    return s ? s : "";
}

/* outcome: (None, how, exit_code, name, value, [lines]); the texts are bytes without NUL, and live
 * as long as it does. */
static void read_outcome(PyObject *outcome, struct done_msg *ret) {
    ret->how = (enum done_how)PyLong_AsLong(PyTuple_GetItem(outcome, 1));
    ret->exit_code = (uint32_t)PyLong_AsLong(PyTuple_GetItem(outcome, 2));
    ret->name = text_of(outcome, 3);
    ret->value = text_of(outcome, 4);
    PyObject *lines = PyTuple_GetItem(outcome, 5);
    Py_ssize_t n = lines && PyList_Check(lines) ? PyList_Size(lines) : 0;
    for (Py_ssize_t i = 0; i < n && ret->nlines < DONE_MAX_LINES; i++) {
        const char *s = PyBytes_AsString(PyList_GetItem(lines, i));
        if (s)
            ret->lines[ret->nlines++] = s;
    }
}

static void run(const struct run_msg *r, struct done_msg *ret) {
    PyObject *code = code_bytes(r);
    bool handles = r->flags & RUN_HANDLER;
    struct handler h = {0};
    program_use_cpus(r->limits.cpus_percent);
    if (!code || (handles && cut_parts(&code, &h) < 0) || place(code) < 0 || set_arguments(r) < 0) {
        PyErr_Print();
        _exit(1);
    }
    PyObject *exc = handles ? handle(code, &h, ret) : execute(code, r->flags);
    Py_DECREF(code);
    if (exc != Py_None) {
        PyObject *steps = PyObject_CallFunctionObjArgs(cell.uncaught, exc, NULL);
        Py_DECREF(exc);
        PyObject *outcome = steps ? drive(steps) : NULL;
        Py_XDECREF(steps);
        if (!outcome || !PyTuple_Check(outcome) || PyTuple_Size(outcome) != 6) {
            PyErr_Print();
            _exit(1);
        }
        read_outcome(outcome, ret); /* which stays */
    } else {
        Py_DECREF(exc);
    }
    if (!finish())
        ret->exit_code = NO_FLUSH;
}

void program_rehearse(void) {
    call_quietly(cell.rehearse, NULL);
}

static uint64_t cpu_us(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000u;
}

_Noreturn void program_main(struct wire_in *in, bool cgroups) {
    struct err e;
    struct run_msg r;
    struct wire_out o;
    pid_t self = getpid();
    uint64_t before_us = cpu_us();
    int rc = run_get(in, &r, &e);
    if (cgroups)
        r.limits.pids = 0;
    if (rc < 0 || kernel_limit(&r.limits, &e) < 0) {
        wire_begin(&o, WIRE_K_BROKEN);
        wire_put_str(&o, e.text);
        wire_send(KERNEL_CTL_FD, &o, &e);
        _exit(1);
    }
    struct done_msg d = {.how = DONE_RETURNED, .name = "", .value = "", .result_fd = -1};
    run(&r, &d);
    if (getpid() == self) { /* a fork of the program that came back here is not the program */
        d.cpu_us = cpu_us() - before_us;
        if (d.result_len > DONE_INLINE &&
            memfd_open("result", d.result, d.result_len, &d.result_fd, &e) < 0)
            d.result_len = 0; /* it has used up its descriptors or its memory */
        done_put(&o, &d);
        wire_send(KERNEL_CTL_FD, &o, &e);
        /* Without control groups it is /proc that tells init what we used: stay until we are ended.
         */
        char c;
        while (!cgroups && recv(KERNEL_CTL_FD, &c, 1, 0) > 0)
            ;
    }
    _exit((int)d.exit_code);
}
