/* The system call filter: what is refused, with which errno, and in which words.
 *
 * Theory of operation. Everything is allowed but what the table in seccomp_rules.c names; a row
 * refuses a call altogether or for some arguments. Rows with words for people become notifications:
 * the caller waits while init asks seccomp_refusal for the errno and remembers the words. Rows
 * without words are calls that libraries try and do without; they get their errno from the kernel
 * at once. Rows that are *served* are notified too, and init makes the call itself, on a descriptor
 * that it has (see seccomp_service): so what it has looked at is what it acts on. Only sockets are
 * let, which are judged by these numbers alone.
 *
 * There are two programs (see the header). The late one has what is notified, since there is a
 * listener for each sandbox, and what a kernel still has to do on its way in. Of two answers the
 * kernel takes an errno rather than a notification, and either rather than leave to go on; of two
 * errnos the late one's.
 *
 * libseccomp turns the early rows into a binary tree over the call numbers; the late ones are
 * seccomp_late.c's. In front of the early part goes a prologue written by hand, for what libseccomp
 * cannot say: ranges of numbers, "anything but these values", and a mask on a value that is then
 * compared with several; for late calls of that kind there are such programs too. Both parts answer
 * a foreign ABI (i386; x32 has bit 30 of the number set) with ENOSYS, the early one also every
 * number that nobody has judged yet. So the kernel's newest calls stay shut until somebody raises
 * NR_LAST.
 *
 * SECURITY: the kernel takes int arguments from the low half of a register, so comparisons look at
 * those 32 bits only; a comparison of 64 bits would be passed by setting a bit that nobody reads.
 */

#include "sandbox/seccomp.h"

#include "base/fd.h"
#include "sandbox/seccomp_late.h"
#include "sandbox/seccomp_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers that the architecture leaves empty below the common ones, which start at 424. */
#if defined __x86_64__
enum { GAP_FIRST = 337, GAP_LAST = 423 };
#elif defined __aarch64__
enum { GAP_FIRST = 295, GAP_LAST = 423 };
#else
#error "judge this architecture's system calls first"
#endif

/* --- the prologue --- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low half: both architectures are little-endian. */
#define LOAD_ARG(n) LOAD(args[n])
#define LOAD_ARG_HIGH(n)                                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + 4)
#define IF_EQ(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, then, els)
#define IF_GT(v, then, els)  BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, v, then, els)
#define ANSWER(action)       BPF_STMT(BPF_RET | BPF_K, action)
#define ANSWER_ERRNO(errnum) ANSWER(SECCOMP_RET_ERRNO | (errnum))

/* Entered with nothing loaded, left with the call's number loaded. */
static const struct sock_filter judge_number[] = {
    LOAD(nr),
    IF_GT(NR_LAST, 2, 0),
    IF_GT(GAP_LAST, 2, 0),
    IF_GT(GAP_FIRST - 1, 0, 1),
    ANSWER_ERRNO(ENOSYS),
};

/* One call's judgement; every path ends in an answer. */
static const struct sock_filter judge_socket[] = {
    LOAD_ARG(0),
    IF_EQ(AF_UNIX, 11, 0),
    IF_EQ(AF_INET, 1, 0),
    IF_EQ(AF_INET6, 0, 10),
    LOAD_ARG(1), /* plain ones are init's to make or let: see seccomp_service */
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCK_KIND),
    IF_EQ(SOCK_STREAM, 1, 0),
    IF_EQ(SOCK_DGRAM, 0, 6),
    LOAD_ARG(2), /* other protocols would load their kernel modules */
    IF_EQ(IPPROTO_IP, 4, 0),
    IF_EQ(IPPROTO_TCP, 3, 0),
    IF_EQ(IPPROTO_UDP, 2, 0),
    ANSWER_ERRNO(EPROTONOSUPPORT),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter judge_socketpair[] = {
    LOAD_ARG(0),
    IF_EQ(AF_UNIX, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_USER_NOTIF),
};
static const struct sock_filter judge_personality[] = {
    LOAD_ARG(0),
    IF_EQ(0, 1, 0),
    IF_EQ(UINT32_MAX, 0, 1), /* a query */
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER_ERRNO(EPERM),
};
/* Oneself only, and RLIMIT_CORE only to ask: a new limit is answered as setrlimit is, in the table.
 */
static const struct sock_filter judge_prlimit64[] = {
    LOAD_ARG(0),
    IF_EQ(0, 0, 8),
    LOAD_ARG(1),
    IF_EQ(RLIMIT_CORE, 0, 4),
    LOAD_ARG(2),
    IF_EQ(0, 0, 3),
    LOAD_ARG_HIGH(2),
    IF_EQ(0, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER_ERRNO(0),
    ANSWER_ERRNO(EPERM),
};

#define JUDGE(name)                                                                                \
    { SYS_##name, judge_##name, sizeof judge_##name / sizeof judge_##name[0] }
static const struct seccomp_judge early_judges[] = {JUDGE(personality)},
                                  late_judges[] = {JUDGE(socket), JUDGE(socketpair),
                                                   JUDGE(prlimit64)};

struct program {
    struct sock_filter code[BPF_MAXINSNS];
    size_t len;
};

/* What is prepended is far below BPF_MAXINSNS; only libseccomp's part has to be checked. */
static void program_add(struct program *p, const struct sock_filter *code, size_t n) {
    memcpy(p->code + p->len, code, n * sizeof *code);
    p->len += n;
}

static void add_abi(struct program *p) {
    const struct sock_filter arch[] = {
        LOAD(arch),
        IF_EQ(seccomp_arch_native(), 1, 0),
        ANSWER_ERRNO(ENOSYS),
    };
    program_add(p, arch, sizeof arch / sizeof arch[0]);
}

static void add_prologue(struct program *p) {
    add_abi(p);
    program_add(p, judge_number, sizeof judge_number / sizeof judge_number[0]);
    for (size_t i = 0; i < sizeof early_judges / sizeof early_judges[0]; i++) {
        const struct seccomp_judge *j = &early_judges[i];
        const struct sock_filter enter = IF_EQ((uint32_t)j->nr, 0, (uint8_t)j->len);
        program_add(p, &enter, 1);
        program_add(p, j->code, j->len);
    }
}

/* --- the table through libseccomp --- */

static void ctx_done(scmp_filter_ctx *ctx) {
    if (*ctx)
        seccomp_release(*ctx);
}

static int add_rule(scmp_filter_ctx ctx, const struct rule *r, struct err *e) {
    struct scmp_arg_cmp cmp[2];
    unsigned n = 0;
    for (; n < 2 && r->when[n].mask; n++)
        cmp[n] = (struct scmp_arg_cmp){
            .arg = r->when[n].arg,
            .op = SCMP_CMP_MASKED_EQ,
            .datum_a = r->when[n].mask,
            .datum_b = r->when[n].value,
        };
    uint32_t action = r->op || r->served ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO((uint32_t)r->errnum);
    int rc = seccomp_rule_add_exact_array(ctx, action, r->nr, n, cmp);
    return rc < 0 ? err_set(e, -rc, "%s: libseccomp takes no such rule", r->rule) : 0;
}

static int add_rules(scmp_filter_ctx ctx, struct err *e) {
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (rc < 0)
        return err_set(e, -rc, "libseccomp: cannot set attributes");
    for (size_t i = 0; i < seccomp_nrules; i++)
        if (!seccomp_rules[i].prologue && seccomp_part_of(&seccomp_rules[i]) == SECCOMP_EARLY &&
            add_rule(ctx, &seccomp_rules[i], e) < 0)
            return -1;
    return 0;
}

/* libseccomp writes to descriptors only. */
static int add_exported(struct program *p, scmp_filter_ctx ctx, struct err *e) {
    AUTO_FD fd = memfd_create("seccomp-export", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "memfd_create");
    int rc = seccomp_export_bpf(ctx, fd);
    if (rc < 0)
        return err_set(e, -rc, "libseccomp: export");
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "fstat of the exported filter");
    size_t size = (size_t)st.st_size;
    if (size == 0 || size % sizeof p->code[0] || size / sizeof p->code[0] > BPF_MAXINSNS - p->len)
        return err_set(e, E2BIG, "libseccomp: exported filter of %zu bytes", size);
    if (pread(fd, p->code + p->len, size, 0) != (ssize_t)size)
        return err_set(e, EIO, "read of the exported filter");
    p->len += size / sizeof p->code[0];
    return 0;
}

static int add_early(struct program *p, struct err *e) {
    __attribute__((cleanup(ctx_done))) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!ctx)
        return err_set(e, ENOMEM, "libseccomp: init");
    if (add_rules(ctx, e) < 0)
        return -1;
    add_prologue(p);
    return add_exported(p, ctx, e);
}

static int add_late(struct program *p, struct err *e) {
    size_t len;
    add_abi(p);
    if (seccomp_late(late_judges, sizeof late_judges / sizeof late_judges[0], p->code + p->len,
                     &len, e) < 0)
        return -1;
    p->len += len;
    return 0;
}

int seccomp_compile(enum seccomp_part part, int *ret_fd, struct err *e) {
    struct program p = {.len = 0};
    if ((part == SECCOMP_EARLY ? add_early(&p, e) : add_late(&p, e)) < 0)
        return -1;
    return memfd_of("seccomp", p.code, p.len * sizeof p.code[0], ret_fd, e);
}

/* --- words --- */

static bool rule_fits(const struct rule *r, int nr, const uint64_t args[6]) {
    if (r->nr != nr)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (((uint32_t)args[r->when[i].arg] & r->when[i].mask) != r->when[i].value)
            return false;
    return true;
}

static bool is_plain_socket(const uint64_t args[6]) {
    uint32_t family = (uint32_t)args[0], kind = (uint32_t)args[1] & SOCK_KIND;
    uint32_t protocol = (uint32_t)args[2];
    if (family == AF_NETLINK) /* libc lists the interfaces through it */
        return protocol == NETLINK_ROUTE;
    return (family == AF_INET || family == AF_INET6) &&
           (kind == SOCK_STREAM || kind == SOCK_DGRAM) &&
           (protocol == IPPROTO_IP || protocol == IPPROTO_TCP || protocol == IPPROTO_UDP);
}

static bool is_epoll(int nr) {
#if defined __x86_64__
    if (nr == SYS_epoll_create)
        return true;
#endif
    return nr == SYS_epoll_create1;
}

static enum seccomp_service option_service(const uint64_t args[6]) {
    return (uint32_t)args[2] == SO_SNDBUF ? SECCOMP_BUFFER : SECCOMP_REUSE;
}

enum seccomp_service seccomp_service(int nr, const uint64_t args[6]) {
    if (nr == SYS_socket)
        return is_plain_socket(args) ? SECCOMP_SOCKET : SECCOMP_REFUSE;
    for (size_t i = 0; i < seccomp_nrules; i++)
        if (seccomp_rules[i].served && rule_fits(&seccomp_rules[i], nr, args))
            return nr == SYS_setsockopt                    ? option_service(args)
                   : nr == SYS_accept || nr == SYS_accept4 ? SECCOMP_ACCEPT
                   : nr == SYS_connect                     ? SECCOMP_CONNECT
                   : nr == SYS_sysinfo                     ? SECCOMP_SYSINFO
                   : nr == SYS_memfd_create                ? SECCOMP_MEMFD
                   : nr == SYS_ioctl                       ? SECCOMP_IFACE
                   : is_epoll(nr)                          ? SECCOMP_EPOLL
                   : nr == SYS_epoll_ctl                   ? SECCOMP_WATCH
                                                           : SECCOMP_LOCK;
    return SECCOMP_REFUSE;
}

const struct seccomp_refusal *seccomp_refusal(int nr, const uint64_t args[6],
                                              struct seccomp_refusal *scratch) {
    *scratch = (struct seccomp_refusal){
        .errnum = EPERM,
        .op = "make a system call",
        .detail = "this system call is not available inside a sandbox",
        .rule = "seccomp",
    };
    for (size_t i = 0; i < seccomp_nrules; i++) {
        const struct rule *r = &seccomp_rules[i];
        if (!r->op || !rule_fits(r, nr, args))
            continue;
        *scratch = (struct seccomp_refusal){r->errnum, r->op, r->detail, r->rule};
        break;
    }
    return scratch;
}
