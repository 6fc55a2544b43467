/* See run.h. Read by the server from hostile kernels and from clients, so every count has a bound.
 */

#include "wire/run.h"

#include "wire/fields.h"

#include <errno.h>
#include <string.h>

static void put_strings(struct wire_out *o, const char *const *items, uint32_t n) {
    wire_put_u32(o, n);
    for (uint32_t k = 0; k < n; k++)
        wire_put_str(o, items[k]);
}

static uint32_t get_strings(struct wire_in *i, const char **items, uint32_t max) {
    uint32_t n = wire_get_u32(i);
    if (n > max) {
        i->bad = true;
        return 0;
    }
    for (uint32_t k = 0; k < n; k++)
        items[k] = wire_get_str(i, WIRE_MAX);
    return n;
}

void run_put(struct wire_out *o, enum wire_type type, const struct run_msg *r) {
    wire_begin(o, type);
    wire_put_u32(o, r->flags);
    wire_put_str(o, r->profile);
    limits_put(o, &r->limits);
    put_strings(o, r->args, r->nargs);
    put_strings(o, r->env, r->nenv);
    wire_put_bytes(o, r->code, r->flags & RUN_CODE_FD ? 0 : r->code_len);
    if (r->flags & RUN_CODE_FD)
        wire_put_fd(o, r->code_fd);
}

int run_get(struct wire_in *i, struct run_msg *ret, struct err *e) {
    *ret = (struct run_msg){.code_fd = -1};
    ret->flags = wire_get_u32(i);
    ret->profile = wire_get_str(i, 64);
    ret->limits = limits_get(i);
    ret->nargs = get_strings(i, ret->args, RUN_MAX_ARGS);
    ret->nenv = get_strings(i, ret->env, RUN_MAX_ENV);
    ret->code = wire_get_bytes(i, &ret->code_len);
    if (wire_end(i, e) < 0)
        return -1;
    if (ret->flags & RUN_CODE_FD)
        ret->code_fd = wire_take_fd(i);
    return i->bad ? err_set(e, EPROTO, "%s: no code", wire_type_name(i->type)) : 0;
}

void done_put(struct wire_out *o, const struct done_msg *d) {
    wire_begin(o, WIRE_K_DONE);
    wire_put_u32(o, d->how);
    wire_put_u32(o, d->exit_code);
    wire_put_u64(o, d->cpu_us);
    wire_put_str(o, d->name);
    wire_put_str(o, d->value);
    put_strings(o, d->lines, d->nlines);
    wire_put_bytes(o, d->result, d->result_fd < 0 ? d->result_len : 0);
    if (d->result_fd >= 0)
        wire_put_fd(o, d->result_fd);
}

int done_get(struct wire_in *i, struct done_msg *ret, struct err *e) {
    *ret = (struct done_msg){.result_fd = -1};
    uint32_t how = wire_get_u32(i);
    ret->exit_code = wire_get_u32(i);
    ret->cpu_us = wire_get_u64(i);
    ret->name = wire_get_str(i, WIRE_MAX);
    ret->value = wire_get_str(i, WIRE_MAX);
    ret->nlines = get_strings(i, ret->lines, DONE_MAX_LINES);
    ret->result = wire_get_bytes(i, &ret->result_len);
    if (wire_end(i, e) < 0)
        return -1;
    if (how > DONE_REFUSED || ret->exit_code > 255)
        return err_set(e, EPROTO, "K_DONE: impossible outcome");
    ret->how = (enum done_how)how;
    if (i->nfds > 0)
        ret->result_fd = wire_take_fd(i);
    return 0;
}
