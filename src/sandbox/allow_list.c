/* See allow_list.h. */

#include "sandbox/allow_list.h"

#include <errno.h>
#include <seccomp.h>

static void ctx_done(scmp_filter_ctx *ctx) {
    if (*ctx)
        seccomp_release(*ctx);
}

static int add_call(scmp_filter_ctx ctx, const struct allowed_call *c) {
    struct scmp_arg_cmp cmp[ALLOW_WHEN_MAX];
    unsigned n = 0;
    for (; n < ALLOW_WHEN_MAX && c->when[n].mask; n++)
        cmp[n] = (struct scmp_arg_cmp){
            .arg = c->when[n].arg,
            .op = SCMP_CMP_MASKED_EQ,
            .datum_a = c->when[n].mask,
            .datum_b = c->when[n].value,
        };
    return seccomp_rule_add_exact_array(ctx, SCMP_ACT_ALLOW, c->nr, n, cmp);
}

int allow_list_enter(const struct allowed_call *calls, size_t n, enum allow_otherwise otherwise,
                     struct err *e) {
    uint32_t action = otherwise == ALLOW_ELSE_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM);
    __attribute__((cleanup(ctx_done))) scmp_filter_ctx ctx = seccomp_init(action);
    if (!ctx)
        return err_set(e, ENOMEM, "libseccomp: init");
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (rc < 0)
        return err_set(e, -rc, "libseccomp: cannot set attributes");
    for (size_t i = 0; i < n; i++) {
        rc = add_call(ctx, &calls[i]);
        if (rc < 0)
            return err_set(e, -rc, "libseccomp takes no rule for call %d", calls[i].nr);
    }
    rc = seccomp_load(ctx);
    return rc < 0 ? err_set(e, -rc, "libseccomp: load") : 0;
}
