/* cloche_zygote: the extension module that makes any Python a zygote (limited API, one build for
 * every Python from 3.7 on).
 *
 * Theory of operation. cell/zygote.py imports what the profile preloads and calls serve(). That is
 * a loop in C which holds the GIL all the time (there is only one thread, and it is checked before
 * every fork): Z_FORK forks a child into the sandbox that the message's descriptors describe; a
 * child that ends is reaped at once, because a sandbox's PID 1 cannot die before its kernel is
 * reaped.
 *
 * The child enters its sandbox (kernel.c), tells the server that it is ready, and waits for K_RUN.
 * User code then runs with no Python frame of ours below it: the child gives itself a new thread
 * state with an empty stack, and drives a generator of py/cell from C, calling what it yields. The
 * generator is suspended, and so invisible, while user code runs. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03070000
#include <Python.h>

#include "base/clock.h"
#include "base/fd.h"
#include "wire/run.h"
#include "zygote/kernel.h"
#include "zygote/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_KERNELS 4096

struct kernel {
    pid_t pid; /* 0: free */
    uint64_t sandbox;
};

/* Of an MT19937: 624 words, then the position among them. */
struct generator_state {
    uint8_t *at;
    size_t len;
    int *position;
};
#define MT_BYTES   (624 * sizeof(uint32_t))
#define MAX_STATES 32

struct zygote {
    int chan, signals, tasks, proc_dir;
    const void *filter;
    size_t filter_len;
    PyObject *begin, *program; /* borrowed: cell functions */
    struct generator_state states[MAX_STATES];
    unsigned nstates;
    struct kernel kernels[MAX_KERNELS];
};

static struct zygote zygote;
static const char one_thread[] =
    "a preloaded module has started a thread: a zygote forks only with one";

static void send_text(int sock, enum wire_type type, const char *a, const char *b) {
    struct wire_out o;
    struct err e;
    wire_begin(&o, type);
    wire_put_str(&o, a);
    if (b)
        wire_put_str(&o, b);
    wire_send(sock, &o, &e);
}

/* Nothing of the zygote's own frames is to be visible to user code: from here on its stack is
 * empty, and so is that of every child. PyGILState and signal handling go by the OS thread, which
 * stays the same, so this is the main thread as before. */
static int fresh_thread_state(void) {
    typedef PyInterpreterState *(*get_fn)(void);
    static const char *const names[] = {"PyInterpreterState_Get", "_PyInterpreterState_Get",
                                        "PyInterpreterState_Head"};
    get_fn get = NULL;
    for (int i = 0; i < 3 && !get; i++)
        *(void **)&get = dlsym(RTLD_DEFAULT, names[i]);
    if (!get)
        return -1;
    PyInterpreterState *interp = get();
    /* The old one goes before the new one comes, or PyGILState would go on meaning the old one; the
     * third keeps the interpreter from taking the new one for its first (3.11 dies of that). */
    PyThreadState *old = PyThreadState_Get(), *third = PyThreadState_New(interp);
    PyThreadState_Clear(old);
    PyEval_SaveThread();
    PyThreadState_Delete(old);
    PyThreadState *fresh = PyThreadState_New(interp);
    if (!fresh || !third)
        return -1;
    PyEval_RestoreThread(fresh);
    PyThreadState_Clear(third);
    PyThreadState_Delete(third);
    return 0;
}

/* ---- the kernel: a child, inside its sandbox ---- */

/* Generators whose state can be written in place: quicker by a millisecond than asking numpy, which
 * touches two hundred pages for it. */
static void reseed(void) {
    for (unsigned i = 0; i < zygote.nstates; i++) {
        struct generator_state *g = &zygote.states[i];
        for (size_t done = 0; done < g->len;) {
            ssize_t n = getrandom(g->at + done, g->len - done, 0);
            if (n < 0 && errno != EINTR)
                _exit(1);
            done += n > 0 ? (size_t)n : 0;
        }
        *g->position =
            (int)(g->len / sizeof(uint32_t)); /* all used: the next draw makes new ones */
    }
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

/* A function and its arguments, or code and its namespace: calling exec() for that would take a
 * level of the recursion limit. */
static PyObject *call_step(PyObject *item) {
    PyObject *what = PyTuple_GetItem(item, 0), *with = PyTuple_GetItem(item, 1);
    return PyCallable_Check(what) ? PyObject_CallObject(what, with)
                                  : PyEval_EvalCode(what, with, with);
}

/* Calls what the generator yields until it yields an outcome: a tuple whose first item is None. */
static PyObject *drive(PyObject *program) {
    PyObject *item = PyObject_CallMethod(program, "send", "O", Py_None);
    while (item && PyTuple_Check(item) && PyTuple_GetItem(item, 0) != Py_None) {
        PyObject *result = call_step(item);
        PyObject *exc = caught();
        Py_DECREF(item);
        if (!result) {
            result = Py_None;
            Py_INCREF(result);
        }
        item = PyObject_CallMethod(program, "send", "((OO))", result, exc);
        Py_DECREF(result);
        Py_DECREF(exc);
    }
    return item;
}

static const char *text_of(PyObject *outcome, Py_ssize_t at) {
    PyObject *o = PyTuple_GetItem(outcome, at);
    const char *s = o && PyBytes_Check(o) ? PyBytes_AsString(o) : NULL;
    if (!s)
        PyErr_Clear();
    return s ? s : "";
}

static uint64_t cpu_us(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000u;
}

/* outcome: (None, how, exit_code, name, value, [lines]); the texts are bytes without NUL. */
static long report(PyObject *outcome, uint64_t before_us) {
    long how = PyLong_AsLong(PyTuple_GetItem(outcome, 1));
    long code = PyLong_AsLong(PyTuple_GetItem(outcome, 2));
    struct done_msg d = {.how = (enum done_how)how,
                         .exit_code = (uint32_t)code,
                         .cpu_us = cpu_us() - before_us,
                         .name = text_of(outcome, 3),
                         .value = text_of(outcome, 4)};
    PyObject *lines = PyTuple_GetItem(outcome, 5);
    Py_ssize_t n = lines && PyList_Check(lines) ? PyList_Size(lines) : 0;
    for (Py_ssize_t i = 0; i < n && d.nlines < DONE_MAX_LINES; i++) {
        const char *s = PyBytes_AsString(PyList_GetItem(lines, i));
        if (s)
            d.lines[d.nlines++] = s;
    }
    struct wire_out o;
    struct err e;
    done_put(&o, &d);
    wire_send(KERNEL_CTL_FD, &o, &e);
    return code;
}

static _Noreturn void kernel_run(struct wire_in *in, bool cgroups) {
    struct err e;
    struct run_msg r;
    pid_t self = getpid();
    uint64_t before_us = cpu_us();
    if (run_get(in, &r, &e) < 0 ||
        kernel_limit(r.open_files, r.cpu_seconds, cgroups ? 0 : r.pids, &e) < 0) {
        send_text(KERNEL_CTL_FD, WIRE_K_BROKEN, e.text, NULL);
        _exit(1);
    }
    PyObject *code = code_bytes(&r);
    PyObject *args = string_list(r.args, r.nargs), *env = string_list(r.env, r.nenv);
    PyObject *program =
        code && args && env
            ? PyObject_CallFunction(zygote.program, "OkOO", code, (unsigned long)r.flags, args, env)
            : NULL;
    PyObject *outcome = program ? drive(program) : NULL;
    if (!outcome || !PyTuple_Check(outcome) || PyTuple_Size(outcome) != 6) {
        PyErr_Print();
        _exit(1);
    }
    /* A fork of the program that came back here is not the program. */
    long code_out =
        getpid() == self ? report(outcome, before_us) : PyLong_AsLong(PyTuple_GetItem(outcome, 2));
    /* Without control groups it is /proc that tells init what we used: stay until we are ended. */
    char c;
    while (!cgroups && getpid() == self && recv(KERNEL_CTL_FD, &c, 1, 0) > 0)
        ;
    _exit((int)code_out);
}

static _Noreturn void kernel_main(struct kernel_entry *k) {
    struct err e;
    struct wire_in in;
    struct wire_out o;
    bool cgroups = k->nprocs > 0;
    if (kernel_enter(k, &e) < 0) {
        send_text(k->fds[KERNEL_CTL], WIRE_K_BROKEN, e.text, NULL);
        _exit(1);
    }
    PyOS_AfterFork_Child();
    reseed();
    PyObject *r = PyObject_CallObject(zygote.begin, NULL);
    if (!r) {
        PyErr_Print();
        send_text(KERNEL_CTL_FD, WIRE_K_BROKEN, "the cell could not begin", NULL);
        _exit(1);
    }
    Py_DECREF(r);
    wire_begin(&o, WIRE_K_READY);
    if (wire_send(KERNEL_CTL_FD, &o, &e) != WIRE_SENT)
        _exit(1);
    in.nfds = in.fd_at = 0;
    enum wire_got got;
    do
        got = wire_recv(KERNEL_CTL_FD, &in, &e);
    while (got == WIRE_NONE);
    if (got != WIRE_GOT || in.type != WIRE_K_RUN)
        _exit(0);
    kernel_run(&in, cgroups);
}

/* ---- the zygote ---- */

static void remember(pid_t pid, uint64_t sandbox) {
    for (int i = 0; i < MAX_KERNELS; i++) {
        if (zygote.kernels[i].pid == 0) {
            zygote.kernels[i] = (struct kernel){.pid = pid, .sandbox = sandbox};
            return;
        }
    }
}

static void reap(void) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (int i = 0; i < MAX_KERNELS; i++) {
            if (zygote.kernels[i].pid != pid)
                continue;
            zygote.kernels[i].pid = 0;
            struct wire_out o;
            struct err e;
            wire_begin(&o, WIRE_Z_EXITED);
            wire_put_u64(&o, zygote.kernels[i].sandbox);
            wire_put_u32(&o, (uint32_t)pid);
            wire_put_u32(&o, (uint32_t)status);
            wire_send(zygote.chan, &o, &e);
            break;
        }
    }
}

/* proc counts a process's threads as links of its task directory. */
static unsigned threads(void) {
    struct stat st;
    return fstat(zygote.tasks, &st) == 0 ? (unsigned)st.st_nlink - 2 : 0;
}

static void refuse(uint64_t sandbox, const char *why) {
    struct wire_out o;
    struct err e;
    wire_begin(&o, WIRE_Z_FAILED);
    wire_put_u64(&o, sandbox);
    wire_put_str(&o, why);
    wire_send(zygote.chan, &o, &e);
}

static void close_entry(struct kernel_entry *k) {
    fd_close_all(k->fds, KERNEL_FDS_);
    fd_close_all(k->procs, k->nprocs);
}

static int read_fork(struct wire_in *in, struct kernel_entry *k) {
    struct err e;
    k->sandbox = wire_get_u64(in);
    k->uid = wire_get_u32(in);
    k->nprocs = wire_get_u32(in);
    if (k->nprocs > sizeof k->procs / sizeof *k->procs || wire_end(in, &e) < 0)
        return -1;
    for (int i = 0; i < KERNEL_FDS_; i++)
        k->fds[i] = wire_take_fd(in);
    for (unsigned i = 0; i < k->nprocs; i++)
        k->procs[i] = wire_take_fd(in);
    return in->bad ? -1 : 0;
}

static void do_fork(struct wire_in *in) {
    struct kernel_entry k = {
        .proc_dir = zygote.proc_dir, .filter = zygote.filter, .filter_len = zygote.filter_len};
    memset(k.fds, 0xff, sizeof k.fds);
    if (read_fork(in, &k) < 0)
        _exit(1);
    if (threads() != 1) {
        refuse(k.sandbox, one_thread);
    } else if (setns(k.fds[KERNEL_INIT], CLONE_NEWPID) < 0) {
        refuse(k.sandbox, strerror(errno));
    } else {
        PyOS_BeforeFork();
        pid_t pid = fork();
        if (pid == 0)
            kernel_main(&k);
        int why = errno;
        PyOS_AfterFork_Parent();
        if (pid < 0) {
            refuse(k.sandbox, strerror(why));
        } else {
            remember(pid, k.sandbox);
            struct wire_out o;
            struct err e;
            wire_begin(&o, WIRE_Z_FORKED);
            wire_put_u64(&o, k.sandbox);
            wire_put_u32(&o, (uint32_t)pid);
            wire_send(zygote.chan, &o, &e);
        }
    }
    close_entry(&k);
}

static _Noreturn void loop(void) {
    for (;;) {
        struct pollfd p[] = {{.fd = zygote.signals, .events = POLLIN},
                             {.fd = zygote.chan, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            _exit(1);
        if (p[0].revents) {
            struct signalfd_siginfo info;
            (void)!read(zygote.signals, &info, sizeof info);
            reap();
        }
        if (p[1].revents) {
            struct wire_in in;
            struct err e;
            in.nfds = in.fd_at = 0;
            enum wire_got got = wire_recv(zygote.chan, &in, &e);
            if (got == WIRE_EOF || got == WIRE_BAD)
                _exit(0);
            if (got == WIRE_GOT && in.type == WIRE_Z_FORK)
                do_fork(&in);
            if (got == WIRE_GOT)
                wire_in_done(&in);
        }
    }
}

static int map_filter(int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    zygote.filter_len = (size_t)st.st_size;
    zygote.filter = mmap(NULL, zygote.filter_len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    return zygote.filter == MAP_FAILED ? -1 : 0;
}

static int open_files(int filter) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    /* A kernel that is stopped and continued for ever must not keep us busy. */
    const struct sigaction quiet = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGCHLD, &quiet, NULL);
    zygote.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    zygote.tasks = open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
    zygote.proc_dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (zygote.signals < 0 || zygote.tasks < 0 || zygote.proc_dir < 0 || map_filter(filter) < 0)
        return -1;
    close(filter);
    return 0;
}

/* serve(chan, filter, settle, begin, program, version, modules): never returns. */
static PyObject *py_serve(PyObject *self, PyObject *args) {
    (void)self;
    int filter;
    PyObject *settle;
    const char *version, *modules;
    if (!PyArg_ParseTuple(args, "iiOOOss", &zygote.chan, &filter, &settle, &zygote.begin,
                          &zygote.program, &version, &modules))
        return NULL;
    if (open_files(filter) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    struct err e;
    fd_set_cloexec(zygote.chan, 1, &e);
    char version_kept[64], modules_kept[4096]; /* the strings belong to frames that go now */
    snprintf(version_kept, sizeof version_kept, "%s", version);
    snprintf(modules_kept, sizeof modules_kept, "%s", modules);
    Py_INCREF(settle);
    Py_INCREF(zygote.begin);
    Py_INCREF(zygote.program);
    PyObject *done = fresh_thread_state() < 0 ? NULL : PyObject_CallObject(settle, NULL);
    if (!done || threads() != 1) {
        send_text(zygote.chan, WIRE_Z_BROKEN, done ? one_thread : "the cell cannot settle", NULL);
        _exit(1);
    }
    memory_settle();
    send_text(zygote.chan, WIRE_Z_READY, version_kept, modules_kept);
    loop();
}

/* mt19937(address): the state of a generator that every child is to have anew. */
static PyObject *py_mt19937(PyObject *self, PyObject *address) {
    (void)self;
    uint8_t *at = PyLong_AsVoidPtr(address);
    if (!at && PyErr_Occurred())
        return NULL;
    if (zygote.nstates == MAX_STATES)
        Py_RETURN_FALSE;
    zygote.states[zygote.nstates++] = (struct generator_state){
        .at = at, .len = MT_BYTES, .position = (int *)(void *)(at + MT_BYTES)};
    Py_RETURN_TRUE;
}

/* unraisable(exception, object): the report that Python itself makes when nobody can be told. */
static PyObject *py_unraisable(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *exc, *object;
    if (!PyArg_ParseTuple(args, "OO", &exc, &object))
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    PyErr_WriteUnraisable(object);
    Py_RETURN_NONE;
}

/* broken(chan, why): tells the nursery that the profile cannot be loaded. */
static PyObject *py_broken(PyObject *self, PyObject *args) {
    (void)self;
    int chan;
    const char *why;
    if (!PyArg_ParseTuple(args, "is", &chan, &why))
        return NULL;
    send_text(chan, WIRE_Z_BROKEN, why, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"serve", py_serve, METH_VARARGS, "Fork kernels until the nursery is gone."},
    {"mt19937", py_mt19937, METH_O, "Give every child other random numbers."},
    {"broken", py_broken, METH_VARARGS, "Say why this profile cannot be loaded."},
    {"unraisable", py_unraisable, METH_VARARGS, "Report an exception that nobody can catch."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cloche_zygote", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_cloche_zygote(void);
PyMODINIT_FUNC PyInit_cloche_zygote(void) {
    memory_begin();
    return PyModule_Create(&module);
}
