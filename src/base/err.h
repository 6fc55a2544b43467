#pragma once
/* An error that carries its reason and the context it passed through.
 *
 * A fixed-size value: it lives on the caller's stack, works after fork and without memory, and can
 * be copied byte by byte through a pipe. A fallible function returns 0 or -1 and takes `struct err
 * *e` last; `e` may not be NULL. The one who notices fills it (err_set), whoever knows more puts
 * context in front (err_wrap), the top logs it once. */

#define ERR_TEXT_MAX 400

struct err {
    int code;                /* an errno; never 0 after a failure */
    char kind[24];           /* stable word for API users ("unknown_profile"); "" means internal */
    char text[ERR_TEXT_MAX]; /* NUL-terminated, cut when too long */
};

/* Both return -1, so that a failing function can end with `return err_set(…)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_set for errors meant for a user; `kind` is one of the words listed in docs/errors.md. */
int err_user(struct err *e, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "CALL: strerror(errno)", for the common case of a failed system call. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
