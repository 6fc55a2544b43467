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
#include "zygote/program_cell.h"
#include "zygote/program_end.h"
#include "zygote/program_handler.h"
#include "zygote/program_shown.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define PATH     "/workspace/__main__.py"
#define NO_FLUSH 120 /* plain Python's status when a standard stream could not be flushed */

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

static int set_arguments(const struct run_msg *r) {
    if (r->nargs == 0 && r->nenv == 0)
        return 0; /* sys.argv is as the zygote made it */
    PyObject *args = string_list(r->args, r->nargs), *env = string_list(r->env, r->nenv);
    PyObject *done =
        args && env ? PyObject_CallFunctionObjArgs(program_cell.arguments, args, env, NULL) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(env);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Calls what the generator yields until it yields an outcome: a tuple whose first item is None. */
static PyObject *drive(PyObject *steps) {
    PyObject *item = PyObject_CallMethod(steps, "send", "O", Py_None);
    while (item && PyTuple_Check(item) && PyTuple_GetItem(item, 0) != Py_None) {
        PyObject *result = PyObject_CallObject(PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1));
        PyObject *exc = program_caught();
        Py_DECREF(item);
        Py_XDECREF(result);
        item = PyObject_CallMethod(steps, "send", "O", exc);
        Py_DECREF(exc);
    }
    return item;
}

/* Executes a part of the program, whose value may be for show; the exception that ended it, or
 * None. */
static PyObject *execute_part(PyObject *part, bool shows) {
    PyObject *space = PyModule_GetDict(program_cell.main);
    PyObject *value = PyEval_EvalCode(part, space, space);
    PyObject *exc = value && shows ? program_shown_value(value) : program_caught();
    Py_XDECREF(value);
    return exc;
}

/* Init was told how much memory there is before we were told of the program. Where /proc does not
 * say so yet, a call that init answers waits for it: it takes the server's questions first. */
static void wait_for_memory(const struct run_msg *r) {
    char line[64];
    struct sysinfo any;
    int fd = r->flags & RUN_MEMORY ? open("/proc/meminfo", O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    if (strtoull(line + strcspn(line, " "), NULL, 10) != (uint64_t)r->limits.memory_mb << 10)
        sysinfo(&any);
}

/* Executes the program; the exception that ended it, or None. */
static PyObject *execute(PyObject *code, const struct run_msg *r) {
    const uint32_t flags = r->flags;
    PyObject *parts = program_compile(code, flags);
    if (!parts)
        return program_caught();
    wait_for_memory(r); /* in the meantime init has done it, mostly */
    Py_ssize_t n = PyTuple_Check(parts) ? PyTuple_Size(parts) : 1;
    PyObject *exc = Py_None;
    Py_INCREF(exc);
    for (Py_ssize_t i = 0; i < n && exc == Py_None; i++) {
        PyObject *part = PyTuple_Check(parts) ? PyTuple_GetItem(parts, i) : parts;
        Py_DECREF(exc);
        exc = execute_part(part, flags & RUN_VALUE && i == 1);
    }
    Py_DECREF(parts);
    PyObject *late = program_shown_end(flags);
    if (exc != Py_None) {
        Py_DECREF(late);
        return exc;
    }
    Py_DECREF(exc);
    return late;
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

/* What the program asked for; the exception that says why not, or None. */
static PyObject *install(const char *requirements) {
    PyObject *done = PyObject_CallFunction(program_cell.install, "s", requirements);
    Py_XDECREF(done);
    PyObject *exc = program_caught();
    if (exc != Py_None)
        PyException_SetTraceback(exc, Py_None); /* of frames that are ours */
    return exc;
}

static void run_program(struct run_msg *r, struct done_msg *ret) {
    PyObject *code = code_bytes(r);
    bool handles = r->flags & RUN_HANDLER;
    const char *packages = r->flags & RUN_PACKAGES && r->nenv ? r->env[--r->nenv] : NULL;
    struct program_handler h = {0};
    program_use_cpus(r->limits.cpus_percent);
    program_shown_begin(r->flags);
    if (!code || (handles && program_handler_cut(&code, &h) < 0) || place(code) < 0 ||
        set_arguments(r) < 0) {
        PyErr_Print();
        _exit(1);
    }
    if (r->flags & RUN_TREE)
        program_call_quietly(program_cell.attach_tree, NULL);
    if (handles || packages)
        wait_for_memory(r);
    PyObject *exc = packages ? install(packages) : NULL;
    if (!exc || exc == Py_None) {
        Py_XDECREF(exc);
        exc = handles ? program_handler_run(code, &h, ret) : execute(code, r);
    }
    Py_DECREF(code);
    if (exc != Py_None) {
        PyObject *steps = PyObject_CallFunctionObjArgs(program_cell.uncaught, exc, NULL);
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
    if (!program_end())
        ret->exit_code = NO_FLUSH;
}

void program_scout(void) {
    const struct run_msg r = {
        .code = (const uint8_t *)"print(end='')\n", .code_len = 14, .code_fd = -1};
    PyObject *code = code_bytes(&r);
    PyObject *exc = code ? execute(code, &r) : NULL;
    program_end();
    PyErr_Clear();
    Py_XDECREF(exc);
    Py_XDECREF(code);
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
        k_broken_put(&o, &(struct k_broken){.why = e.text});
        wire_send(KERNEL_CTL_FD, &o, &e);
        _exit(1);
    }
    struct done_msg d = {.how = DONE_RETURNED, .name = "", .value = "", .result_fd = -1};
    run_program(&r, &d);
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
