/* See live.h. Here are a live kernel's ends of the server's socket: receive() gives the bytes of
 * the next K_DO, send() makes a K_SAY of bytes. They are C so that user code, which shares the
 * interpreter with live.py, finds no Python of them to change.
 *
 * The event loop (py/cell/tasks.py) waits for requests; here is waited for what a cell needs now,
 * and without the GIL: its threads go on. A SIGINT ends a wait as it ends any of Python's own: its
 * handler runs, and what that raises comes out of the call, of which nothing was done then. */

#include "zygote/live.h"

#include "base/fd.h"
#include "zygote/kernel.h"
#include "zygote/program.h"
#include "zygote/program_cell.h"
#include "zygote/say.h"
#include "zygote/stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOP_PAIR 1001 /* PAIR_FDS of py/cell/tasks.py */
#define LOOP_FD   1003 /* WAITER_FD */

/* Owned: for ever. */
static PyObject *main_function, *rehearse_function;

int live_prepare(PyObject *from) {
    if (from == Py_None)
        return 0;
    if (!PyArg_ParseTuple(from, "OO", &main_function, &rehearse_function))
        return -1;
    Py_INCREF(main_function);
    Py_INCREF(rehearse_function);
    return 0;
}

bool live_is_prepared(void) {
    return main_function != NULL;
}

void live_rehearse(void) {
    PyObject *r = PyObject_CallObject(rehearse_function, NULL);
    PyErr_Clear();
    Py_XDECREF(r);
}

/* To where nobody else has one; consumes it. */
static int place(int fd, int to) {
    int r = fd < 0 ? -1 : dup3(fd, to, O_CLOEXEC);
    int why = errno;
    close(fd);
    errno = why;
    return r;
}

static int open_loop(void) {
    int pair[2];
    struct epoll_event in = {.events = EPOLLIN, .data.fd = LOOP_PAIR};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -1;
    int a = place(pair[0], LOOP_PAIR), b = place(pair[1], LOOP_PAIR + 1);
    return a < 0 || b < 0 || place(epoll_create1(EPOLL_CLOEXEC), LOOP_FD) < 0
               ? -1
               : epoll_ctl(LOOP_FD, EPOLL_CTL_ADD, LOOP_PAIR, &in);
}

PyObject *live_open_loop(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (open_loop() < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_INCREF(Py_None);
    return Py_None;
}

/* The bytes of a descriptor. */
static PyObject *read_file(int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (st.st_size > (off_t)LIVE_MAX)
        return PyErr_Format(PyExc_ValueError, "a request of %lld bytes", (long long)st.st_size);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, st.st_size);
    char *to = bytes ? PyBytes_AsString(bytes) : NULL;
    for (off_t at = 0; to && at < st.st_size;) {
        ssize_t n = pread(fd, to + at, (size_t)(st.st_size - at), at);
        if (n <= 0) {
            Py_DECREF(bytes);
            return n < 0 ? PyErr_SetFromErrno(PyExc_OSError)
                         : PyErr_Format(PyExc_ValueError, "a request that was cut");
        }
        at += n;
    }
    return bytes;
}

static PyObject *read_message(struct wire_in *in) {
    struct err e;
    struct k_do m;
    if (k_do_get(in, &m, &e) < 0)
        Py_RETURN_NONE; /* the server would not: whoever has its end is to see ours */
    if (m.json.len > 0 || m.file < 0)
        return PyBytes_FromStringAndSize(m.json.data, (Py_ssize_t)m.json.len);
    return read_file(m.file);
}

/* receive(wait): None at the end. No bytes where nothing is there and `wait` is False, or None and
 * the event loop has something to do. */
static PyObject *receive(PyObject *self, PyObject *wait) {
    (void)self;
    struct err e;
    bool or_loop = wait == Py_None;
    AUTO_FREE struct wire_in *in = calloc(1, sizeof *in);
    if (!in)
        return PyErr_NoMemory();
    enum wire_got got;
    do {
        if (wait != Py_False && say_wait(POLLIN, or_loop ? LOOP_FD : -1) < 0)
            return NULL;
        got = wire_recv(KERNEL_CTL_FD, in, &e);
    } while (got == WIRE_NONE && wait == Py_True);
    if (got == WIRE_NONE)
        return PyBytes_FromStringAndSize(NULL, 0);
    if (got != WIRE_GOT)
        Py_RETURN_NONE;
    PyObject *r = read_message(in);
    wire_in_done(in);
    return r;
}

static PyMethodDef ends[] = {
    {"receive", receive, METH_O, "The next request; None when there are no more."},
    {"send", say_bytes, METH_O, "Tells the server."},
};

static _Noreturn void refuse(const char *why) {
    struct wire_out o;
    struct err e;
    k_broken_put(&o, &(struct k_broken){.why = why});
    wire_send(KERNEL_CTL_FD, &o, &e);
    _exit(1);
}

_Noreturn void live_main(struct wire_in *in) {
    struct err e;
    struct k_live m;
    if (!main_function)
        refuse("this profile has no live kernels");
    /* Before the limits: its descriptors have high numbers. */
    if (open_loop() < 0)
        refuse("the event loop's descriptors cannot be opened");
    if (k_live_get(in, &m, &e) < 0 || kernel_limit(&m.limits, &e) < 0)
        refuse(e.text);
    program_use_cpus(m.limits.cpus_percent);
    PyObject *get = PyCFunction_New(&ends[0], NULL), *put = PyCFunction_New(&ends[1], NULL);
    PyObject *streams = stdout_begin();
    if (!get || !put || !streams)
        refuse("out of memory");
    PyObject *r = PyObject_CallFunctionObjArgs(main_function, get, put, streams, NULL);
    if (!r)
        PyErr_WriteUnraisable(main_function);
    _exit(r ? 0 : 1);
}
