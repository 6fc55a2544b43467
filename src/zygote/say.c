/* See say.h. A wait is without the GIL: other threads go on. */

#include "zygote/say.h"

#include "base/fd.h"
#include "wire/codec.h"
#include "zygote/kernel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#define INLINE_MAX (WIRE_MAX - sizeof(uint32_t)) /* bytes that fit into one packet */

/* SIGINT is let in while we sleep only: one that comes between the look for signals and the sleep
 * would not end it. */
int say_wait(short events, int other) {
    struct pollfd p[] = {{.fd = KERNEL_CTL_FD, .events = events}, {.fd = other, .events = POLLIN}};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    for (;;) {
        pthread_sigmask(SIG_BLOCK, &interrupt, &before);
        int n = PyErr_CheckSignals();
        if (n == 0) {
            Py_BEGIN_ALLOW_THREADS;
            n = ppoll(p, other < 0 ? 1 : 2, NULL, &before);
            Py_END_ALLOW_THREADS;
        } else {
            n = -2;
        }
        int why = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (n == -2)
            return -1;
        if (n >= 0 || why != EINTR)
            return 0; /* what is wrong with the socket shows when it is used */
    }
}

/* A message that is ready to go, all of it or nothing. */
static PyObject *deliver(const struct wire_out *o) {
    struct err e;
    enum wire_sent sent;
    do {
        if (say_wait(POLLOUT, -1) < 0)
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        sent = wire_send(KERNEL_CTL_FD, o, &e);
        Py_END_ALLOW_THREADS;
    } while (sent == WIRE_AGAIN);
    if (sent == WIRE_SENT)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_OSError, e.text);
    return NULL;
}

PyObject *say_bytes(PyObject *self, PyObject *bytes) {
    (void)self;
    struct err e;
    char *data;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(bytes, &data, &len) < 0)
        return NULL;
    if ((size_t)len > LIVE_MAX)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are more than can be said at once", len);
    AUTO_FD fd = -1;
    bool fits = (size_t)len <= INLINE_MAX;
    /* User code may have used up its descriptors or its memory: that is no end of the kernel, as a
     * broken socket is (OSError, see channel.py). */
    if (!fits && memfd_open("say", data, (size_t)len, &fd, &e) < 0)
        return PyErr_Format(PyExc_RuntimeError, "%zd bytes cannot be shown: %s", len, e.text);
    AUTO_FREE struct wire_out *o = malloc(sizeof *o);
    if (!o)
        return PyErr_NoMemory();
    k_say_put(o, &(struct k_say){.json = {data, fits ? (size_t)len : 0}, .file = fd});
    return deliver(o);
}
