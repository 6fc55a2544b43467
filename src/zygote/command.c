/* See command.h. The process is confined already, so there is nothing left but to put in order what
 * execve keeps: limits, terminal, directory, signals, descriptors. No Python runs from here on.
 *
 * A terminal is made by init, so that it is one of the sandbox's own /dev/pts; the other end is the
 * server's, and is in this process only until it executes. The process leads a session of its own
 * since it came in (kernel.c), which is what job control needs.
 */

#include "zygote/command.h"

#include "base/fd.h"
#include "base/signals.h"
#include "sandbox/root.h"
#include "zygote/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { EXIT_CANNOT = 126, EXIT_NOT_FOUND = 127 };

struct command {
    struct k_exec m;
    char **args, **env; /* NULL-terminated; the strings live as long as the message */
};

/* What commands have of the zygote's own environment: where programs are, and how packages are
 * installed (py/cell/packages.py). Those that end in an underscore are the beginnings of names. */
static const char *const inherited[] = {
    "PATH",          "PYTHONUSERBASE",      "PYTHONPATH", "CLOCHE_PREFIX",
    "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_",       "UV_",
    "npm_config_"};
#define INHERITED_MAX 32
/* Of a tenant's profile (sandbox/root.h): there when its sandbox has one. */
#define TREE_BIN ROOT_TREE "/bin"

/* With room for what is inherited. */
static char **list_of(struct wire_strs strs) {
    char **list = calloc((size_t)strs.n + INHERITED_MAX + 1, sizeof *list);
    const char *s;
    for (size_t i = 0; list && (s = wire_strs_next(&strs)); i++)
        list[i] = (char *)(uintptr_t)s;
    return list;
}

static int read_command(struct wire_in *in, struct command *c, struct err *e) {
    if (k_exec_get(in, &c->m, e) < 0)
        return -1;
    c->args = list_of(c->m.args);
    c->env = list_of(c->m.env);
    if (!c->args || !c->env || (c->m.rows && c->m.terminal < 0))
        return err_set(e, EPROTO, "K_EXEC: malformed");
    return c->args[0] ? 0 : err_set(e, EPROTO, "K_EXEC: no program");
}

static bool is_inherited(const char *pair) {
    size_t len = strcspn(pair, "=");
    for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++) {
        size_t n = strlen(inherited[i]);
        if (strncmp(pair, inherited[i], n) == 0 && (n == len || inherited[i][n - 1] == '_'))
            return true;
    }
    return false;
}

static bool has_name(char *const *env, const char *pair) {
    size_t n = strcspn(pair, "=") + 1;
    for (; *env; env++) {
        if (strncmp(*env, pair, n) == 0)
            return true;
    }
    return false;
}

/* The programs of the tenant's profile come first. */
static char *with_tree(char *pair) {
    static const char path[] = "PATH=";
    char *longer;
    if (strncmp(pair, path, sizeof path - 1) != 0 || access(TREE_BIN, F_OK) < 0 ||
        asprintf(&longer, "%s" TREE_BIN ":%s", path, pair + sizeof path - 1) < 0)
        return pair;
    return longer;
}

/* Where the request has none of that name. */
static void inherit(char **env) {
    char **end = env;
    while (*end)
        end++;
    char **from = environ;
    for (unsigned n = 0; from && *from && n < INHERITED_MAX; from++) {
        if (is_inherited(*from) && !has_name(env, *from)) {
            *end++ = with_tree(*from);
            n++;
        }
    }
}

static int open_terminal(const struct command *c, int *ret_tty, struct err *e) {
    const struct winsize size = {.ws_row = (unsigned short)c->m.rows,
                                 .ws_col = (unsigned short)c->m.columns};
    struct termios modes;
    *ret_tty = ioctl(c->m.terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*ret_tty < 0 || ioctl(*ret_tty, TIOCSWINSZ, &size) < 0 || tcgetattr(*ret_tty, &modes) < 0)
        return err_sys(e, "open its other end");
    modes.c_iflag |= IUTF8; /* the erase key takes away a character, not a byte of one */
    if (tcsetattr(*ret_tty, TCSANOW, &modes) < 0 || ioctl(*ret_tty, TIOCSCTTY, 0) < 0)
        return err_sys(e, "take it over");
    return 0;
}

static int sit_down(const struct command *c, struct err *e) {
    AUTO_FD tty = -1;
    if (open_terminal(c, &tty, e) < 0)
        return -1;
    for (int i = 0; i < 3; i++) {
        if (dup2(tty, i) < 0)
            return err_sys(e, "dup2");
    }
    return 0;
}

static _Noreturn void broken(const struct err *why) {
    struct wire_out o;
    struct err e;
    k_broken_put(&o, &(struct k_broken){.why = why->text});
    wire_send(KERNEL_CTL_FD, &o, &e);
    _exit(1);
}

_Noreturn void command_main(struct wire_in *in) {
    struct command c;
    struct err e;
    if (read_command(in, &c, &e) < 0 || kernel_limit(&c.m.limits, &e) < 0)
        broken(&e);
    if (c.m.rows && sit_down(&c, &e) < 0) {
        dprintf(2, "cloche: no terminal: %s\n", e.text);
        _exit(EXIT_CANNOT);
    }
    if (chdir(c.m.directory) < 0) {
        dprintf(2, "cloche: cannot change to %s: %s\n", c.m.directory, strerror(errno));
        _exit(EXIT_CANNOT);
    }
    signals_reset(); /* Python ignores SIGPIPE and SIGXFSZ */
    close_range(3, ~0u, 0);
    inherit(c.env);
    environ = c.env; /* whose PATH is the one to look in */
    execvp(c.args[0], c.args);
    int why = errno;
    dprintf(2, "cloche: %s: %s\n", c.args[0], strerror(why));
    _exit(why == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT);
}
