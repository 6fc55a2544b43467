/* cloche_zygote: the extension module that makes any Python a zygote (limited API, one build for
 * every Python from 3.7 on).
 *
 * Theory of operation. cell/zygote.py imports what the profile preloads and calls serve(). That is
 * a loop in C which holds the GIL all the time (there is only one thread, and it is checked before
 * every fork): Z_FORK forks a child into the sandbox that the message's descriptors describe; a
 * child that ends is reaped at once, because a sandbox's PID 1 cannot die before its kernel is
 * reaped.
 *
 * The child enters its sandbox (kernel.c), tells the server that it is ready, and waits for its
 * order: to run a program (program.c) or, where IPython is loaded, to stay (live.c). A program then
 * has no Python frame of ours below it: the zygote has given itself a new thread state with an
 * empty stack. */

#include "base/fd.h"
#include "zygote/command.h"
#include "zygote/kernel.h"
#include "zygote/live.h"
#include "zygote/memory.h"
#include "zygote/program.h"
#include "zygote/program_cell.h"
#include "zygote/program_shown.h"
#include "zygote/secrets.h"

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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_KERNELS 4096
#define REST_MS     10
#define FIRST_FORKS 16
#define MAX_MOMENTS 2000 /* of a millisecond, for threads that end */

struct kernel {
    pid_t pid; /* 0: free */
    uint32_t number;
    uint64_t sandbox;
};

struct zygote {
    int chan, signals, tasks, proc_dir;
    const void *filter;
    size_t filter_len;
    PyObject *begin; /* a function of the cell, or None */
    PyObject *hooks; /* lists of functions by occasion, see hooks.py */
    bool in_kernel;
    unsigned forks;
    struct kernel kernels[MAX_KERNELS];
};

static struct zygote zygote;
static const char one_thread[] =
    "a preloaded module has started a thread: a zygote forks only with one";

static void say_broken(int chan, const char *why) {
    struct wire_out o;
    struct err e;
    z_broken_put(&o, &(struct z_broken){.why = why});
    wire_send(chan, &o, &e);
}

static _Noreturn void kernel_broken(int ctl, const char *why) {
    struct wire_out o;
    struct err e;
    k_broken_put(&o, &(struct k_broken){.why = why});
    wire_send(ctl, &o, &e);
    _exit(1);
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

static void rehearse(void) {
    if (live_is_prepared())
        live_rehearse();
    else
        program_rehearse();
}

/* As in a kernel, without what concerns others. */
static void scout_life(void) {
    secrets_renew();
    rehearse();
    if (!live_is_prepared())
        program_scout();
}

static _Noreturn void kernel_main(struct kernel_entry *k) {
    struct err e;
    struct wire_in in;
    struct wire_out o;
    bool cgroups = k->nprocs > 0;
    if (kernel_enter(k, &e) < 0)
        kernel_broken(k->fds[KERNEL_CTL], e.text);
    PyOS_AfterFork_Child();
    zygote.in_kernel = true;
    secrets_renew();
    PyObject *r = zygote.begin != Py_None ? PyObject_CallObject(zygote.begin, NULL) : Py_None;
    if (!r) {
        PyErr_Print();
        kernel_broken(KERNEL_CTL_FD, "the cell could not begin");
    }
    wire_begin(&o, WIRE_K_READY);
    if (wire_send(KERNEL_CTL_FD, &o, &e) != WIRE_SENT)
        _exit(1);
    /* Where programs are waiting, one comes at once; else this is a ready sandbox of the pool. */
    struct pollfd ctl = {.fd = KERNEL_CTL_FD, .events = POLLIN};
    if (poll(&ctl, 1, REST_MS) == 0)
        rehearse();
    in.nfds = in.fd_at = 0;
    enum wire_got got;
    do
        got = wire_recv(KERNEL_CTL_FD, &in, &e);
    while (got == WIRE_NONE);
    switch (got == WIRE_GOT ? (int)in.type : WIRE_TYPE_NONE) {
    case WIRE_K_RUN:
        program_main(&in, cgroups);
    case WIRE_K_LIVE:
        live_main(&in);
    case WIRE_K_EXEC:
        command_main(&in);
    default:
        _exit(0);
    }
}

/* ---- the zygote ---- */

static void remember(pid_t pid, const struct kernel_entry *k) {
    for (int i = 0; i < MAX_KERNELS; i++) {
        if (zygote.kernels[i].pid == 0) {
            zygote.kernels[i] =
                (struct kernel){.pid = pid, .number = k->number, .sandbox = k->sandbox};
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
            z_exited_put(&o, &(struct z_exited){.sandbox = zygote.kernels[i].sandbox,
                                                .number = zygote.kernels[i].number,
                                                .pid = (uint32_t)pid,
                                                .status = (uint32_t)status});
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

/* A module may have ended its thread just now: matplotlib does when it has built its font cache. */
static void wait_for_threads(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; threads() > 1 && i < MAX_MOMENTS; i++) {
        Py_BEGIN_ALLOW_THREADS;
        nanosleep(&moment, NULL);
        Py_END_ALLOW_THREADS;
    }
}

static void refuse(const struct kernel_entry *k, const char *why) {
    struct wire_out o;
    struct err e;
    z_failed_put(&o, &(struct z_failed){.sandbox = k->sandbox, .number = k->number, .why = why});
    wire_send(zygote.chan, &o, &e);
}

static void close_entry(struct kernel_entry *k) {
    fd_close_all(k->fds, KERNEL_FDS_);
    fd_close_all(k->procs, k->nprocs);
}

static int read_fork(struct wire_in *in, struct kernel_entry *k) {
    struct z_fork m;
    struct err e;
    if (z_fork_get(in, &m, &e) < 0)
        return -1;
    k->sandbox = m.sandbox;
    k->number = m.number;
    k->uid = m.uid;
    wire_keep_all(in, m.fds, KERNEL_FDS_, k->fds);
    k->nprocs = m.procs.n;
    wire_keep_all(in, m.procs.fd, m.procs.n, k->procs);
    return 0;
}

static void do_fork(struct wire_in *in) {
    struct kernel_entry k = {
        .proc_dir = zygote.proc_dir, .filter = zygote.filter, .filter_len = zygote.filter_len};
    memset(k.fds, 0xff, sizeof k.fds);
    if (read_fork(in, &k) < 0)
        _exit(1);
    if (threads() != 1) {
        refuse(&k, one_thread);
    } else if (setns(k.fds[KERNEL_INIT], CLONE_NEWPID) < 0) {
        refuse(&k, strerror(errno));
    } else {
        PyOS_BeforeFork();
        pid_t pid = fork();
        if (pid == 0)
            kernel_main(&k);
        int why = errno;
        PyOS_AfterFork_Parent();
        if (pid < 0) {
            refuse(&k, strerror(why));
        } else {
            zygote.forks++;
            remember(pid, &k);
            struct wire_out o;
            struct err e;
            z_forked_put(&o, &(struct z_forked){
                                 .sandbox = k.sandbox, .number = k.number, .pid = (uint32_t)pid});
            wire_send(zygote.chan, &o, &e);
        }
    }
    close_entry(&k);
}

static _Noreturn void loop(void) {
    for (bool settled = false;;) {
        struct pollfd p[] = {{.fd = zygote.signals, .events = POLLIN},
                             {.fd = zygote.chan, .events = POLLIN}};
        int n = poll(p, 2, settled ? -1 : REST_MS);
        if (n < 0 && errno != EINTR)
            _exit(1);
        /* Not before the first programs: somebody may be waiting for the engine to start. */
        if (!settled && (n == 0 || zygote.forks >= FIRST_FORKS)) {
            memory_snapshot(scout_life);
            settled = true;
        }
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

/* Python looks up what it calls from the C library when it first calls it: better here than in
 * every kernel after its fork. */
static void bind_early(void) {
    Py_tss_t *key = PyThread_tss_alloc();
    if (key && PyThread_tss_create(key) == 0)
        PyThread_tss_delete(key);
    PyThread_tss_free(key);
}

/* serve(chan, filter, settle, begin, hooks, live, version, modules): never returns. */
static PyObject *py_serve(PyObject *self, PyObject *args) {
    (void)self;
    int filter;
    PyObject *settle, *live;
    const char *version, *modules;
    if (!PyArg_ParseTuple(args, "iiOOOOss", &zygote.chan, &filter, &settle, &zygote.begin,
                          &zygote.hooks, &live, &version, &modules) ||
        live_prepare(live) < 0)
        return NULL;
    if (open_files(filter) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    wait_for_threads();
    struct err e;
    fd_set_cloexec(zygote.chan, 1, &e);
    char version_kept[64], modules_kept[4096]; /* the strings belong to frames that go now */
    snprintf(version_kept, sizeof version_kept, "%s", version);
    snprintf(modules_kept, sizeof modules_kept, "%s", modules);
    Py_INCREF(settle);
    Py_INCREF(zygote.begin);
    Py_INCREF(zygote.hooks);
    bind_early();
    PyObject *cell = fresh_thread_state() < 0 ? NULL : PyObject_CallObject(settle, NULL);
    bool good = cell && program_prepare(cell) == 0;
    if (!good)
        PyErr_Print();
    if (!good || threads() != 1) {
        say_broken(zygote.chan, good ? one_thread : "the cell cannot settle");
        _exit(1);
    }
    memory_settle();
    struct wire_out o;
    z_ready_put(&o, &(struct z_ready){.version = version_kept, .modules = modules_kept});
    wire_send(zygote.chan, &o, &e);
    loop();
}

/* instances(objects, types): those of a list that are of one of a tuple of types. Python's own
 * isinstance() takes milliseconds for the objects of a zygote, at every start. */
static PyObject *py_instances(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *objects, *types, *found = PyList_New(0);
    if (!found || !PyArg_ParseTuple(args, "O!O!", &PyList_Type, &objects, &PyTuple_Type, &types)) {
        Py_XDECREF(found);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(objects); i++) {
        PyObject *one = PyList_GetItem(objects, i);
        bool is = false;
        for (Py_ssize_t k = 0; k < PyTuple_Size(types) && !is; k++)
            is = PyObject_TypeCheck(one, (PyTypeObject *)PyTuple_GetItem(types, k));
        if (is && PyList_Append(found, one) < 0) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}

/* What hooks.py registers with Python. In the zygote's own forks nothing is to be done; in a kernel
 * what it has kept is called as Python would call it, the first ones last before a fork. */
static PyObject *forking(const char *when, bool last_first) {
    PyObject *list = zygote.in_kernel ? PyDict_GetItemString(zygote.hooks, when) : NULL;
    Py_ssize_t n = list ? PyList_Size(list) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *function = PyList_GetItem(list, last_first ? n - 1 - i : i);
        PyObject *r = PyObject_CallObject(function, NULL);
        if (!r)
            PyErr_WriteUnraisable(function);
        Py_XDECREF(r);
    }
    Py_RETURN_NONE;
}

static PyObject *py_before_fork(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return forking("before", true);
}

static PyObject *py_after_in_parent(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return forking("after_in_parent", false);
}

static PyObject *py_after_in_child(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return forking("after_in_child", false);
}

/* broken(chan, why): tells the nursery that the profile cannot be loaded. */
static PyObject *py_broken(PyObject *self, PyObject *args) {
    (void)self;
    int chan;
    const char *why;
    if (!PyArg_ParseTuple(args, "is", &chan, &why))
        return NULL;
    say_broken(chan, why);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"serve", py_serve, METH_VARARGS, "Fork kernels until the nursery is gone."},
    {"instances", py_instances, METH_VARARGS, "Those objects that are of these types."},
    {"numpy_state", secrets_numpy_state, METH_O, "Give every kernel other random numbers."},
    {"python_state", secrets_python_state, METH_VARARGS, "Give every kernel other random numbers."},
    {"bytes_state", secrets_bytes_state, METH_O, "Give every kernel another secret."},
    {"before", py_before_fork, METH_NOARGS, "For os.register_at_fork."},
    {"after_in_parent", py_after_in_parent, METH_NOARGS, "For os.register_at_fork."},
    {"after_in_child", py_after_in_child, METH_NOARGS, "For os.register_at_fork."},
    {"show", program_show, METH_O, "Tell the server what a program shows."},
    {"open_loop", live_open_loop, METH_NOARGS, "Open what an event loop needs of the system."},
    {"broken", py_broken, METH_VARARGS, "Say why this profile cannot be loaded."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cloche_zygote", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_cloche_zygote(void);
PyMODINIT_FUNC PyInit_cloche_zygote(void) {
    memory_begin();
    return PyModule_Create(&module);
}
