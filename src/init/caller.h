#pragma once
/* A process that waits in a system call which init makes for it.
 *
 * SECURITY: another thread of the caller's can change its memory and its table of descriptors at
 * any moment. So each is looked at once, and init acts on its own copy of what it saw. Only a call
 * that was judged by its registers alone, which nobody can change, may be told to go on. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct caller {
    int listener; /* borrowed */
    uint64_t id;  /* of the notification */
    pid_t thread;
    pid_t process; /* 0 until caller_descriptor was asked */
    int nr;
    uint64_t args[6];
};

/* Whether it still waits: its pid is its own as long as it does. */
bool caller_waits(const struct caller *c);
/* The descriptor in its first argument as one of ours, to be closed; -1 with errno set. */
int caller_descriptor(struct caller *c);
/* Its memory at `at`; false: EFAULT. */
bool caller_read(const struct caller *c, uint64_t at, void *to, size_t len);
bool caller_write(const struct caller *c, uint64_t at, const void *from, size_t len);
/* Whether a signal is pending for which the caller has a handler: a signal does not end its wait
 * for our answer (seccomp_load.c). */
bool caller_signalled(const struct caller *c);
/* Ends the call: 0 is success. */
void caller_answer(const struct caller *c, int errnum);
/* Has the caller make the call itself after all. */
void caller_go_on(const struct caller *c);
/* Ends the call with a new descriptor for the file that is `fd` here, or with an errno. */
void caller_give(const struct caller *c, int fd, bool cloexec);
