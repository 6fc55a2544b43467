/* See secrets.h. What can be written in place is: quicker by a millisecond than asking numpy, which
 * touches two hundred pages for it. */

#include "zygote/secrets.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

/* Of an MT19937: 624 words, and the position among them. */
struct secret_state {
    uint8_t *at;
    size_t len;
    int *position; /* or NULL */
};
#define MT_WORDS   624
#define MT_BYTES   (MT_WORDS * sizeof(uint32_t))
#define MAX_STATES 32

static struct secret_state states[MAX_STATES];
static unsigned nstates;

void secrets_renew(void) {
    for (unsigned i = 0; i < nstates; i++) {
        struct secret_state *g = &states[i];
        for (size_t done = 0; done < g->len;) {
            ssize_t n = getrandom(g->at + done, g->len - done, 0);
            if (n < 0 && errno != EINTR)
                _exit(1);
            done += n > 0 ? (size_t)n : 0;
        }
        if (g->position)
            *g->position = MT_WORDS; /* all used: the next draw makes new ones */
    }
}

static PyObject *add_state(uint8_t *at, size_t len, int *position) {
    if (nstates == MAX_STATES)
        Py_RETURN_FALSE;
    states[nstates++] = (struct secret_state){.at = at, .len = len, .position = position};
    Py_RETURN_TRUE;
}

/* numpy_state(address): the state of a Mersenne twister of numpy's. */
PyObject *secrets_numpy_state(PyObject *self, PyObject *address) {
    (void)self;
    uint8_t *at = PyLong_AsVoidPtr(address);
    if (!at && PyErr_Occurred())
        return NULL;
    return add_state(at, MT_BYTES, (int *)(void *)(at + MT_BYTES));
}

/* python_state(generator, words): a random.Random and what its getstate() tells. Where that is
 * found in the object, it can be written there; False where this Python keeps it otherwise. */
PyObject *secrets_python_state(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *generator, *words;
    if (!PyArg_ParseTuple(args, "OO!", &generator, &PyTuple_Type, &words))
        return NULL;
    struct {
        PyObject head;
        int index;
        uint32_t state[MT_WORDS];
    } *g = (void *)generator;
    if (PyTuple_Size(words) != MT_WORDS + 1 ||
        PyLong_AsLong(PyTuple_GetItem(words, MT_WORDS)) != g->index)
        Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < MT_WORDS; i++) {
        if (PyLong_AsUnsignedLong(PyTuple_GetItem(words, i)) != g->state[i])
            Py_RETURN_FALSE;
    }
    return add_state((uint8_t *)g->state, MT_BYTES, &g->index);
}

/* bytes_state(bytes): a secret that was made in the zygote. */
PyObject *secrets_bytes_state(PyObject *self, PyObject *bytes) {
    (void)self;
    char *at = PyBytes_AsString(bytes);
    return at ? add_state((uint8_t *)at, (size_t)PyBytes_Size(bytes), NULL) : NULL;
}
