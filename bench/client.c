/* The stop watch of bench/run: runs one program many times, through an engine's socket or as a
 * command, and prints how long each took.
 *
 *   bench_client run (-n RUNS | -s SECONDS) [-c CLIENTS] EXPECT socket PATH PROFILE CODE
 *   bench_client run (-n RUNS | -s SECONDS) [-c CLIENTS] EXPECT exec PROGRAM [ARGUMENT…]
 *   bench_client start EXPECT PATH PROFILE CODE PROGRAM [ARGUMENT…]
 *
 * Both kinds go through the same loop, so that the watch costs everyone the same. A run lasts from
 * before connect() or spawn until the result is there or the command is reaped; what it printed
 * must be EXPECT, or all ends here. CLIENTS runs are under way at any time. With -s, what is not
 * over in time is awaited and not counted.
 *
 * Prints a line "NS WARM" for every run (WARM is 1 when the sandbox came from the pool) and at the
 * end "elapsed NS". `start` spawns an engine, waits for the first result of a program, prints that
 * one line and ends the engine. */

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "wire/codec.h"
#include "wire/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CLIENTS 256
#define MAX_OUTPUT  4096
#define TIMEOUT_MS  60000 /* far more than any program here needs on a busy machine */
#define RETRY_US    200

extern char **environ;

struct program {
    const char *expect;
    char **argv;                         /* a command; or, if NULL, */
    const char *socket, *profile, *code; /* what an engine is asked for */
};

struct work {
    struct program program;
    uint32_t runs, seconds, clients; /* runs or seconds is 0 */
    uint32_t begun;
    uint64_t start_ns, end_ns;
};

/* One run under way. */
struct job {
    int fd; /* owned: the connection, or the command's output; -1 when idle */
    pid_t pid;
    uint64_t start_ns;
    char out[MAX_OUTPUT];
    size_t len;
    bool warm;
};

static struct wire_in in;
static struct wire_out out;
static pid_t engine; /* started by us: it ends with us, however that happens */

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("bench_client: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    if (engine > 0)
        kill(engine, SIGTERM);
    exit(1);
}

static int connect_to(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        fail("the socket's path is too long");
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail("socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        fd_close(&fd);
    return fd;
}

static void send_program(int fd, const struct program *p) {
    static struct run_msg m;
    struct err e;
    m = (struct run_msg){.profile = p->profile,
                         .limits = {.timeout_ms = TIMEOUT_MS},
                         .code = (const uint8_t *)p->code,
                         .code_len = strlen(p->code),
                         .code_fd = -1};
    run_put(&out, WIRE_C_RUN, &m);
    if (wire_send(fd, &out, &e) != WIRE_SENT)
        fail("cannot send the program: %s", e.text);
}

static pid_t spawn(char **argv, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid;
    int rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    if (rc)
        fail("cannot start %s: %s", argv[0], strerror(rc));
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void job_start(struct job *j, const struct program *p) {
    j->len = 0;
    j->warm = false;
    j->start_ns = now_ns();
    if (!p->argv) {
        j->fd = connect_to(p->socket);
        if (j->fd < 0)
            fail("cannot connect: %s", strerror(errno));
        send_program(j->fd, p);
        return;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail("pipe: %s", strerror(errno));
    j->pid = spawn(p->argv, ends[1]);
    close(ends[1]);
    j->fd = ends[0];
}

static void keep(struct job *j, const void *data, size_t len) {
    if (len > sizeof j->out - j->len)
        fail("it prints more than expected");
    memcpy(j->out + j->len, data, len);
    j->len += len;
}

static void check_status(int status) {
    if (status)
        fail("the program ended with status %d", status);
}

static bool has(const uint8_t *data, size_t len, const char *word) {
    return memmem(data, len, word, strlen(word));
}

/* One packet; true at the end of the run. */
static bool step_socket(struct job *j) {
    struct err e = {0};
    enum wire_got got = wire_recv(j->fd, &in, &e);
    if (got == WIRE_NONE)
        return false;
    if (got != WIRE_GOT)
        fail("the engine hung up: %s", e.text);
    bool over = false;
    struct c_output output;
    struct c_result result;
    struct c_error error;
    if (c_output_get(&in, &output, &e) == 0) {
        keep(j, output.data.data, output.data.len);
    } else if (c_result_get(&in, &result, &e) == 0) {
        check_status((int)result.status);
        const struct wire_bytes *json = &result.json;
        j->warm = has(json->data, json->len, "\"warm\":true") ||
                  has(json->data, json->len, "\"warm\": true");
        over = true;
    } else if (c_error_get(&in, &error, &e) == 0) {
        fail("%s: %s", error.kind, error.message);
    }
    wire_in_done(&in);
    return over;
}

static bool step_exec(struct job *j) {
    char data[MAX_OUTPUT];
    ssize_t n = read(j->fd, data, sizeof data);
    if (n < 0)
        fail("read: %s", strerror(errno));
    if (n > 0) {
        keep(j, data, (size_t)n);
        return false;
    }
    int status;
    if (waitpid(j->pid, &status, 0) < 0)
        fail("waitpid: %s", strerror(errno));
    check_status(status);
    return true;
}

static void job_end(struct job *j, const struct work *w) {
    uint64_t end = now_ns();
    fd_close(&j->fd);
    const char *expect = w->program.expect;
    if (j->len != strlen(expect) || memcmp(j->out, expect, j->len) != 0)
        fail("it printed \"%.*s\" instead of \"%s\"", (int)j->len, j->out, expect);
    if (!w->seconds || end <= w->end_ns)
        printf("%llu %d\n", (unsigned long long)(end - j->start_ns), j->warm);
}

static bool may_begin(struct work *w) {
    if (w->seconds ? now_ns() >= w->end_ns : w->begun == w->runs)
        return false;
    w->begun++;
    return true;
}

static void run_all(struct work *w) {
    static struct job jobs[MAX_CLIENTS];
    static struct pollfd polls[MAX_CLIENTS];
    w->start_ns = now_ns();
    w->end_ns = w->start_ns + w->seconds * 1000000000ull;
    uint32_t active = 0;
    for (uint32_t i = 0; i < w->clients; i++) {
        jobs[i].fd = -1;
        if (may_begin(w)) {
            job_start(&jobs[i], &w->program);
            active++;
        }
    }
    while (active) {
        for (uint32_t i = 0; i < w->clients; i++)
            polls[i] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
        if (poll(polls, w->clients, -1) < 0)
            fail("poll: %s", strerror(errno));
        for (uint32_t i = 0; i < w->clients; i++) {
            struct job *j = &jobs[i];
            if (!polls[i].revents || !(w->program.argv ? step_exec(j) : step_socket(j)))
                continue;
            job_end(j, w);
            if (may_begin(w))
                job_start(j, &w->program);
            else
                active--;
        }
    }
    uint64_t elapsed = w->seconds ? w->end_ns - w->start_ns : now_ns() - w->start_ns;
    printf("elapsed %llu\n", (unsigned long long)elapsed);
}

static uint32_t number(const char *flag, const char *text, uint64_t max) {
    struct num_rule rule = {flag, 1, max};
    uint32_t v;
    struct err e;
    if (num_u32(text, &rule, &v, &e) < 0)
        fail("%s", e.text);
    return v;
}

static _Noreturn void usage(void) {
    fail("see the top of bench/client.c");
}

static void main_run(int argc, char **argv) {
    struct work w = {.clients = 1};
    int flag;
    while ((flag = getopt(argc, argv, "+n:s:c:")) != -1) {
        if (flag == 'n')
            w.runs = number("-n", optarg, UINT32_MAX);
        else if (flag == 's')
            w.seconds = number("-s", optarg, 3600);
        else if (flag == 'c')
            w.clients = number("-c", optarg, MAX_CLIENTS);
        else
            usage();
    }
    argc -= optind;
    argv += optind;
    if (argc < 3 || !w.runs == !w.seconds)
        usage();
    w.program.expect = argv[0];
    if (strcmp(argv[1], "exec") == 0) {
        w.program.argv = argv + 2;
    } else {
        if (argc != 5)
            usage();
        w.program.socket = argv[2];
        w.program.profile = argv[3];
        w.program.code = argv[4];
    }
    run_all(&w);
}

static void main_start(int argc, char **argv) {
    if (argc < 6)
        usage();
    struct work w = {
        .program = {.expect = argv[1], .socket = argv[2], .profile = argv[3], .code = argv[4]}};
    struct job j = {.start_ns = now_ns()};
    engine = spawn(argv + 5, -1);
    while ((j.fd = connect_to(argv[2])) < 0) {
        if (waitpid(engine, NULL, WNOHANG) != 0)
            fail("the engine did not start");
        usleep(RETRY_US);
    }
    send_program(j.fd, &w.program);
    while (!step_socket(&j))
        ;
    job_end(&j, &w);
    kill(engine, SIGTERM);
    waitpid(engine, NULL, 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        main_run(argc - 1, argv + 1);
    else if (argc > 1 && strcmp(argv[1], "start") == 0)
        main_start(argc - 1, argv + 1);
    else
        usage();
    return 0;
}
