/* See seccomp_fixture.h. */

#include "seccomp_fixture.h"

#include "base/fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct sock_filter filter[SECCOMP_PARTS_][BPF_MAXINSNS];
size_t filter_bytes[SECCOMP_PARTS_];

int filter_compile(void **state) {
    (void)state;
    struct err e;
    for (int part = 0; part < SECCOMP_PARTS_; part++) {
        AUTO_FD fd = -1;
        if (seccomp_compile((enum seccomp_part)part, &fd, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            return -1;
        }
        ssize_t n = read(fd, filter[part], sizeof filter[part]);
        if (n <= 0)
            return -1;
        filter_bytes[part] = (size_t)n;
    }
    return 0;
}

/* --- the interpreter --- */

static size_t jump(const struct sock_filter *f, uint32_t a) {
    switch (BPF_OP(f->code)) {
    case BPF_JA:
        return f->k;
    case BPF_JEQ:
        return a == f->k ? f->jt : f->jf;
    case BPF_JGT:
        return a > f->k ? f->jt : f->jf;
    case BPF_JGE:
        return a >= f->k ? f->jt : f->jf;
    case BPF_JSET:
        return a & f->k ? f->jt : f->jf;
    default:
        fail_msg("unexpected jump %#x", f->code);
        return 0;
    }
}

uint32_t filter_judge_part(enum seccomp_part part, const struct seccomp_data *data) {
    uint32_t a = 0;
    for (size_t pc = 0; pc < filter_bytes[part] / sizeof filter[part][0]; pc++) {
        const struct sock_filter *f = &filter[part][pc];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + sizeof a <= sizeof *data);
            memcpy(&a, (const char *)data + f->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            assert_int_equal(BPF_CLASS(f->code), BPF_JMP);
            pc += jump(f, a);
        }
    }
    fail_msg("the filter ends without an answer");
    return 0;
}

/* The lower number wins, as in the kernel (both are ALLOW, USER_NOTIF or ERRNO here). */
uint32_t filter_judge(const struct seccomp_data *data) {
    uint32_t early = filter_judge_part(SECCOMP_EARLY, data);
    uint32_t late = filter_judge_part(SECCOMP_LATE, data);
    return (early & SECCOMP_RET_ACTION_FULL) < (late & SECCOMP_RET_ACTION_FULL) ? early : late;
}
