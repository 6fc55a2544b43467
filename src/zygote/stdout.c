/* See stdout.h.
 *
 * No thread waits for the GIL while it holds the lock. A write that fits takes the lock only if it
 * is free; all else is done without the GIL. The thread never waits for the pipe: it writes what
 * the pipe takes, and comes back. A child that user code forks has no such thread and an empty
 * buffer; it gets a thread of its own when it prints. */

#include "zygote/stdout.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DELAY_NS 4000000
#define PIECE    4096 /* a pipe that can be written to takes that much */
#define STACK    65536
#define SHORT    4096 /* characters */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool has_thread;
    size_t len;
    char data[65536];
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void took(size_t n) {
    memmove(out.data, out.data + n, out.len - n);
    out.len -= n;
}

/* With the lock: what can be written without waiting. */
static void push(void) {
    size_t done = 0;
    struct pollfd p = {.fd = 1, .events = POLLOUT};
    while (done < out.len && poll(&p, 1, 0) == 1) {
        size_t left = out.len - done;
        ssize_t n = write(1, out.data + done, left < PIECE ? left : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        done = n < 0 ? out.len : done + (size_t)n; /* closed: nobody can be told */
    }
    took(done);
}

static void *write_later(void *none) {
    const struct timespec delay = {.tv_nsec = DELAY_NS};
    (void)none;
    pthread_mutex_lock(&out.lock);
    for (;;) {
        while (out.len == 0)
            pthread_cond_wait(&out.more, &out.lock);
        pthread_mutex_unlock(&out.lock);
        nanosleep(&delay, NULL);
        pthread_mutex_lock(&out.lock);
        push();
    }
    return NULL;
}

/* With the lock. Signals are for the interpreter's threads. */
static void start_thread(void) {
    pthread_t id;
    pthread_attr_t how;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    out.has_thread = pthread_create(&id, &how, write_later, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
}

/* All of it, waiting for the pipe; 0 or an errno. What could not be written stays only if a signal
 * came. */
static int write_all(int fd, const char *data, size_t len, size_t *ret_done) {
    *ret_done = 0;
    while (*ret_done < len) {
        ssize_t n = write(fd, data + *ret_done, len - *ret_done);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            n = poll(&p, 1, -1) < 0 ? -1 : 0;
        }
        if (n < 0)
            return errno;
        *ret_done += (size_t)n;
    }
    return 0;
}

static int flush_locked(void) {
    size_t done;
    int why = write_all(1, out.data, out.len, &done);
    took(why && why != EINTR ? out.len : done);
    return why;
}

/* The rest of a piece of work that was done without the GIL: 0 when it is over, 1 to do it again,
 * -1 with an exception. */
static int judge(int why) {
    if (why == 0)
        return 0;
    if (why == EINTR)
        return PyErr_CheckSignals() < 0 ? -1 : 1;
    errno = why;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

static PyObject *flush(PyObject *self, PyObject *none) {
    int why, how;
    (void)self, (void)none;
    do {
        Py_BEGIN_ALLOW_THREADS;
        pthread_mutex_lock(&out.lock);
        why = flush_locked();
        pthread_mutex_unlock(&out.lock);
        Py_END_ALLOW_THREADS;
        how = judge(why);
    } while (how > 0);
    if (how == 0)
        Py_RETURN_NONE;
    return NULL;
}

/* Without waiting: false when that cannot be. */
static bool keep(const char *data, size_t len) {
    if (len > sizeof out.data || pthread_mutex_trylock(&out.lock) != 0)
        return false;
    if (!out.has_thread)
        start_thread();
    bool fits = out.has_thread && len <= sizeof out.data - out.len;
    if (fits) {
        bool first = out.len == 0;
        memcpy(out.data + out.len, data, len);
        out.len += len;
        if (first && len)
            pthread_cond_signal(&out.more);
    }
    pthread_mutex_unlock(&out.lock);
    return fits;
}

/* The buffer first, then this; -1 with an exception. */
static int write_through(int fd, const char *data, size_t len) {
    size_t at = 0;
    int how;
    do {
        size_t done = 0;
        int why;
        Py_BEGIN_ALLOW_THREADS;
        pthread_mutex_lock(&out.lock);
        why = flush_locked();
        if (why == 0)
            why = write_all(fd, data + at, len - at, &done);
        pthread_mutex_unlock(&out.lock);
        Py_END_ALLOW_THREADS;
        at += done;
        how = judge(why);
    } while (how > 0);
    return how;
}

/* -1 with an exception. */
static int put(int fd, const char *data, size_t len) {
    return fd == 1 && keep(data, len) ? 0 : write_through(fd, data, len);
}

static PyObject *write_to(int fd, PyObject *from) {
    PyObject *bytes = PyBytes_FromObject(from);
    char *data;
    Py_ssize_t len;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &len) < 0)
        return NULL;
    int r = put(fd, data, (size_t)len);
    Py_DECREF(bytes);
    return r < 0 ? NULL : PyLong_FromSsize_t(len);
}

static PyObject *write_stdout(PyObject *self, PyObject *from) {
    (void)self;
    return write_to(1, from);
}

static PyObject *write_stderr(PyObject *self, PyObject *from) {
    (void)self;
    return write_to(2, from);
}

/* A text's own UTF-8; it keeps that as long as it lives, if it is not ASCII. */
static const char *(*utf8_of)(PyObject *text, Py_ssize_t *ret_len);

/* The same for text; TextIOWrapper's own way there is three times as long. */
static PyObject *write_stdout_text(PyObject *self, PyObject *text) {
    (void)self;
    if (!PyUnicode_Check(text))
        return PyErr_Format(PyExc_TypeError, "write() argument must be str");
    Py_ssize_t n = PyUnicode_GetLength(text), len;
    if (utf8_of && n <= SHORT) {
        const char *data = utf8_of(text, &len);
        return data && put(1, data, (size_t)len) == 0 ? PyLong_FromSsize_t(n) : NULL;
    }
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    PyObject *r = bytes ? write_to(1, bytes) : NULL;
    Py_XDECREF(bytes);
    if (!r)
        return NULL;
    Py_DECREF(r);
    return PyLong_FromSsize_t(n);
}

static void before_fork(void) {
    pthread_mutex_lock(&out.lock);
    push(); /* so that the child does not print it as well */
}

static void after_fork(void) {
    pthread_mutex_unlock(&out.lock);
}

static void after_fork_in_child(void) {
    pthread_mutex_init(&out.lock, NULL);
    pthread_cond_init(&out.more, NULL);
    out.has_thread = false;
    out.len = 0;
}

static PyMethodDef functions[] = {
    {"write", write_stdout, METH_O, "Write bytes to the stream."},
    {"write", write_stderr, METH_O, "Write bytes to the stream."},
    {"flush", flush, METH_NOARGS, "Write what waits."},
    {"write", write_stdout_text, METH_O, "Write text to the stream."},
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

PyObject *stdout_begin(void) {
    PyObject *f[FUNCTIONS];
    *(void **)&utf8_of = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8AndSize");
    if (pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0)
        return PyErr_NoMemory();
    for (size_t i = 0; i < FUNCTIONS; i++) {
        f[i] = PyCFunction_New(&functions[i], NULL);
        if (!f[i])
            return NULL;
    }
    return PyTuple_Pack(FUNCTIONS, f[0], f[1], f[2], f[3]);
}
