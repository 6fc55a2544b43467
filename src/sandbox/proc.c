/* See proc.h. Theory of operation.
 *
 * Most of what stands in /proc beside the processes is about the machine: figures in which one
 * tenant can see the work of another, and lists behind locks that the whole machine needs (who
 * reads /proc/locks in a loop makes every lock on the host wait). So a sandbox has none of it but
 * what is named here. Files that libraries look for are made once for each nursery, with the names
 * of the host's figures and values that do not change, and mounted over the real ones; `pinned`
 * ones are constant or links, and stay.
 *
 * Hiding the others one by one would cost a mount for each, in every sandbox. The option subset=pid
 * hides them all, but then nothing is left to mount a file over. So the mounts come first and the
 * option second, by a remount: from then on the file system finds no name any more, and what the
 * kernel still knows is what is in use. A mount keeps its place in use, an open descriptor of init
 * keeps the pinned ones. A name that a newer kernel brings is hidden without our doing. */

#include "sandbox/proc.h"

#include "base/fd.h"
#include "sandbox/mount.h"
#include "sandbox/root.h"
#include "sandbox/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

#define MADE         ROOT_PYLIB "/proc"
#define MEMINFO      "/proc/meminfo"
#define MEMINFO_OF   "meminfo-%u"
#define MEMINFO_LINE "%-15.*s %8llu%s\n"
#define MEMINFO_MAX  8192

/* `name` is where the value begins: the name with its colon, if it has one, is before. */
typedef void line_fn(FILE *out, const char *line, size_t name, uint64_t memory_kb);

static void keep_line(FILE *out, const char *line, size_t name, uint64_t memory_kb) {
    (void)name, (void)memory_kb;
    fputs(line, out);
}

static void zero_line(FILE *out, const char *line, size_t name, uint64_t memory_kb) {
    (void)memory_kb;
    fprintf(out, "%.*s 0\n", (int)name, line);
}

static bool is_name(const char *line, size_t name, const char *what) {
    return strlen(what) == name && memcmp(line, what, name) == 0;
}

/* The lines that say how much memory the sandbox has. */
static bool is_all(const char *line, size_t name) {
    static const char *const all[] = {"MemTotal:", "MemFree:", "MemAvailable:"};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        if (is_name(line, name, all[i]))
            return true;
    }
    return false;
}

static void meminfo_line(FILE *out, const char *line, size_t name, uint64_t memory_kb) {
    static const char *const same[] = {"Hugepagesize:", "VmallocTotal:"};
    unsigned long long value = is_all(line, name) ? memory_kb : 0;
    for (unsigned i = 0; i < sizeof same / sizeof *same; i++) {
        if (is_name(line, name, same[i]))
            value = strtoull(line + name, NULL, 10);
    }
    fprintf(out, MEMINFO_LINE, (int)name, line, value, strstr(line, " kB") ? " kB" : "");
}

/* A line for each processor, by which libraries count them; the time of boot is no secret, since
 * the clocks tell it. */
static void stat_line(FILE *out, const char *line, size_t name, uint64_t memory_kb) {
    if (strncmp(line, "cpu", 3) == 0)
        fprintf(out, "%.*s%s 0 0 0 0 0 0 0 0 0 0\n", (int)name, line, name == 3 ? " " : "");
    else if (is_name(line, name, "btime"))
        keep_line(out, line, name, memory_kb);
    else
        zero_line(out, line, name, memory_kb);
}

/* The second figure is the idle time of all processors. */
static void uptime_line(FILE *out, const char *line, size_t name, uint64_t memory_kb) {
    (void)memory_kb;
    fprintf(out, "%.*s 0.00\n", (int)name, line);
}

static int make_lines(FILE *in, line_fn *fn, uint32_t memory_mb, char **ret, size_t *ret_len) {
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    FILE *out = open_memstream(ret, ret_len);
    if (!out)
        return -1;
    while (getline(&line, &room, in) >= 0)
        fn(out, line, strcspn(line, " :\t\n") + (line[strcspn(line, " :\t\n")] == ':'),
           (uint64_t)memory_mb << 10);
    return fclose(out);
}

/* What is made from the host's file of the same name. */
static const struct {
    const char *name;
    line_fn *fn;
} made[] = {
    {"cpuinfo", keep_line}, /* as of now: the clock rates in it follow the load */
    {"meminfo", meminfo_line}, {"stat", stat_line}, {"uptime", uptime_line}, {"vmstat", zero_line},
};

/* What is not. */
static const struct {
    const char *name, *text;
} fixed[] = {
    {"diskstats", ""},
    {"loadavg", "0.00 0.00 0.00 1/1 1\n"},
};

/* Settings that libraries ask for, as the host has them. */
static const char *const settings[] = {
    "fs/aio-max-nr",
    "fs/epoll/max_user_watches",
    "fs/file-max",
    "fs/inotify/max_queued_events",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/mqueue/msg_default",
    "fs/mqueue/msg_max",
    "fs/mqueue/msgsize_default",
    "fs/mqueue/msgsize_max",
    "fs/mqueue/queues_max",
    "fs/nr_open",
    "fs/pipe-max-size",
    "fs/pipe-user-pages-hard",
    "fs/pipe-user-pages-soft",
    "fs/protected_fifos",
    "fs/protected_hardlinks",
    "fs/protected_regular",
    "fs/protected_symlinks",
    "kernel/cap_last_cap",
    "kernel/core_uses_pid",
    "kernel/kptr_restrict",
    "kernel/msgmax",
    "kernel/msgmnb",
    "kernel/msgmni",
    "kernel/ngroups_max",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/overflowgid",
    "kernel/overflowuid",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/pty/max",
    "kernel/randomize_va_space",
    "kernel/random/poolsize",
    "kernel/sched_rr_timeslice_ms",
    "kernel/seccomp/actions_avail",
    "kernel/sem",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "kernel/threads-max",
    "kernel/version",
    "kernel/yama/ptrace_scope",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_unprivileged_port_start",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_keepalive_intvl",
    "net/ipv4/tcp_keepalive_probes",
    "net/ipv4/tcp_keepalive_time",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv6/bindv6only",
    "net/ipv6/conf/all/disable_ipv6",
    "vm/max_map_count",
    "vm/mmap_min_addr",
    "vm/overcommit_kbytes",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/page-cluster",
    "vm/swappiness",
};

/* Those that are not the host's: its own value would be its name, or the state of the moment. */
static const struct {
    const char *name, *text;
} own_settings[] = {
    {"fs/aio-nr", "0\n"},
    {"kernel/domainname", "(none)\n"},
    {"kernel/hostname", "sandbox\n"},
    {"kernel/random/entropy_avail", "256\n"},
    {"vm/nr_hugepages", "0\n"},
};

static const char *const pinned[] = {"filesystems", "mounts", "net", "version"};

static int put_file(int root, const char *name, const char *text, size_t len, struct err *e) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", &MADE[1], name);
    return tree_put(root, path, text, len, e);
}

static int put_text(int root, const char *name, const char *text, struct err *e) {
    return put_file(root, name, text, strlen(text), e);
}

static int make_setting(int root, const char *name, const char *text, struct err *e) {
    char to[128], path[128], value[256];
    struct err ignored;
    snprintf(to, sizeof to, "sys/%s", name);
    snprintf(path, sizeof path, "/proc/sys/%s", name);
    if (text)
        return put_text(root, to, text, e);
    /* A kernel may lack one, or show it to root only. */
    return file_read_at(AT_FDCWD, path, value, sizeof value, &ignored) < 0
               ? 0
               : put_text(root, to, value, e);
}

static int make_settings(int root, struct err *e) {
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (make_setting(root, settings[i], NULL, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof own_settings / sizeof *own_settings; i++) {
        if (make_setting(root, own_settings[i].name, own_settings[i].text, e) < 0)
            return -1;
    }
    /* The host's boot_id would say who is on the same machine. */
    char id[64];
    if (file_read_at(AT_FDCWD, PROC_UUID, id, sizeof id, e) < 0)
        return -1;
    return make_setting(root, "kernel/random/boot_id", id, e);
}

static int make_from(int root, FILE *in, const char *to, line_fn *fn, uint32_t memory_mb,
                     struct err *e) {
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    if (make_lines(in, fn, memory_mb, &text, &len) < 0)
        return err_sys(e, "make %s", to);
    return put_file(root, to, text, len, e);
}

static int make_file(int root, const char *name, line_fn *fn, uint32_t memory_mb, struct err *e) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%s", name);
    FILE *in = fopen(path, "re");
    int r = in ? make_from(root, in, name, fn, memory_mb, e) : err_sys(e, "%s", path);
    if (in)
        fclose(in);
    return r;
}

/* What many programs ask for: a mount says so sooner than a file that has to be written. */
static const uint32_t usual_mb[] = {128, 256, 512, 1024, 2048, 4096};

static int make_usual(int root, struct err *e) {
    char text[MEMINFO_MAX], name[32];
    if (file_read_at(AT_FDCWD, MEMINFO, text, sizeof text, e) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof usual_mb / sizeof *usual_mb; i++) {
        snprintf(name, sizeof name, MEMINFO_OF, (unsigned)usual_mb[i]);
        FILE *in = fmemopen(text, strlen(text), "r");
        int r = in ? make_from(root, in, name, meminfo_line, usual_mb[i], e) : err_sys(e, MEMINFO);
        if (in)
            fclose(in);
        if (r < 0)
            return -1;
    }
    return 0;
}

int proc_make(int root, uint32_t memory_mb, struct err *e) {
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
        if (make_file(root, made[i].name, made[i].fn, memory_mb, e) < 0)
            return -1;
    }
    if (make_usual(root, e) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (put_text(root, fixed[i].name, fixed[i].text, e) < 0)
            return -1;
    }
    return make_settings(root, e);
}

/* What the kernel does not have, the sandbox has not either. */
static int cover(const char *name, unsigned long how, struct err *e) {
    char from[64], to[32];
    snprintf(from, sizeof from, MADE "/%s", name);
    snprintf(to, sizeof to, "/proc/%s", name);
    if (mount(from, to, NULL, MS_BIND | how, NULL) < 0 && errno != ENOENT)
        return err_sys(e, "mount %s", to);
    return 0;
}

static int pin(const char *name, struct err *e) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%s", name);
    AUTO_FD fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_DUPFD_CLOEXEC, PROC_PINS) < 0)
        return err_sys(e, "%s", path);
    return 0;
}

int proc_mount(struct err *e) {
    const unsigned flags = MOUNT_RO | MOUNT_NODEV | MOUNT_NOEXEC;
    /* SECURITY: read-only, so that nothing of another process can be written, and hidepid, so that
     * init (whose uid may be ours in single-id mode) is not even visible. */
    if (mount_fs("proc", "/proc", flags, "hidepid=2", e) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++) {
        if (cover(made[i].name, 0, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (cover(fixed[i].name, 0, e) < 0)
            return -1;
    }
    for (unsigned i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        if (pin(pinned[i], e) < 0)
            return -1;
    }
    if (cover("sys", MS_REC, e) < 0)
        return -1;
    const unsigned long same = MS_REMOUNT | MS_NOSUID | MS_RDONLY | MS_NODEV | MS_NOEXEC;
    if (mount(NULL, "/proc", NULL, same, "hidepid=2,subset=pid") < 0)
        return err_sys(e, "hide what is no process in /proc");
    return 0;
}

/* One of those that all share, over another of them; false: there is none of this size. */
static bool mount_usual(uint32_t memory_mb) {
    char path[64];
    snprintf(path, sizeof path, MADE "/" MEMINFO_OF, (unsigned)memory_mb);
    return mount(path, MEMINFO, NULL, MS_BIND, NULL) == 0;
}

/* A file on the sandbox's own tmpfs, without a name as soon as it is mounted: the first one over
 * the nursery's, which all share. Whoever reads it sees all of it (RUN_MEMORY). */
static int mount_own_meminfo(const char *text, size_t len, int *ret_fd, struct err *e) {
    uint32_t any;
    char path[40], by_fd[40];
    if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any)
        return err_sys(e, "getrandom");
    snprintf(path, sizeof path, "/dev/shm/.meminfo-%08x", (unsigned)any);
    AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(e, "%s", path);
    int r = pwrite(fd, text, len, 0) != (ssize_t)len ? err_sys(e, "write %s", path) : 0;
    snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", fd);
    if (r == 0 && mount(by_fd, MEMINFO, NULL, MS_BIND, NULL) < 0)
        r = err_sys(e, "mount " MEMINFO);
    unlink(path);
    if (r == 0)
        *ret_fd = fd_take(&fd);
    return r;
}

/* The made file with other figures; its length, or 0 when it does not fit. A program waits for
 * this: no stream, whose memory a young process would have to copy page by page. */
static size_t meminfo_with(const char *old, uint32_t memory_mb, char *to, size_t room) {
    size_t len = 0;
    for (const char *line = old, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t name = strcspn(line, " "), n = (size_t)(end + 1 - line);
        if (n > room - len)
            return 0;
        if (is_all(line, name))
            n = (size_t)snprintf(to + len, room - len, MEMINFO_LINE, (int)name, line,
                                 (unsigned long long)memory_mb << 10, " kB");
        else
            memcpy(to + len, line, n);
        if (n >= room - len)
            return 0;
        len += n;
    }
    return len;
}

int proc_memory(int *fd, uint32_t memory_mb, struct err *e) {
    char old[MEMINFO_MAX], text[MEMINFO_MAX];
    if (*fd == PROC_MEMORY_BORN && mount_usual(memory_mb)) {
        *fd = PROC_MEMORY_USUAL; /* once: mounts on mounts would have no bound */
        return 0;
    }
    if (file_read_at(AT_FDCWD, MADE "/meminfo", old, sizeof old, e) < 0)
        return -1;
    size_t len = meminfo_with(old, memory_mb, text, sizeof text);
    if (len == 0)
        return err_set(e, EMSGSIZE, MADE "/meminfo is too long");
    if (*fd < 0)
        return mount_own_meminfo(text, len, fd, e);
    if (pwrite(*fd, text, len, 0) != (ssize_t)len || ftruncate(*fd, (off_t)len) < 0)
        return err_sys(e, "write " MEMINFO);
    return 0;
}
