/* See err.h. No allocation and no locale beyond strerror_r, so it may run between fork and exec. */

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put_kind(struct err *e, const char *kind) {
    snprintf(e->kind, sizeof e->kind, "%s", kind);
}

int err_set(struct err *e, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->code = code ? code : EIO;
    put_kind(e, "");
    return -1;
}

int err_user(struct err *e, const char *kind, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->code = EINVAL;
    put_kind(e, kind);
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...) {
    int code = errno;
    char head[ERR_TEXT_MAX / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    char why[96];
    return err_set(e, code, "%s: %s", head, strerror_r(code, why, sizeof why));
}

int err_wrap(struct err *e, const char *fmt, ...) {
    char head[ERR_TEXT_MAX / 2], tail[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    memcpy(tail, e->text, sizeof tail);
    snprintf(e->text, sizeof e->text, "%s: %.*s", head, (int)(sizeof e->text - strlen(head) - 3),
             tail);
    return -1;
}
