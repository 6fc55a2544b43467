/* See state.h. What a newer or older engine does not tell is left out. */

#include "cli/state.h"

#include "base/buf.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/remote.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* getopt tells of a flag without its value by this number: it must be no letter. */
#define LONG(c) (256 + (c))

static const struct option flags[] = {
    {"server", required_argument, NULL, LONG('s')},
    {"key-file", required_argument, NULL, LONG('k')},
    {"socket", required_argument, NULL, LONG('S')},
    {"config", required_argument, NULL, LONG('c')},
    {"json", no_argument, NULL, LONG('j')},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int check_together(const struct status_options *o, struct err *e) {
    if (o->server && (o->socket || o->config))
        return err_user(e, "bad_option",
                        "status: --server names a server elsewhere; %s is for an engine here",
                        o->socket ? "--socket" : "--config");
    if (o->key_file && !o->server)
        return err_user(e, "bad_option", "status: --key-file is for --server URL or CLOCHE_SERVER");
    return 0;
}

int status_options_parse(int argc, char **argv, struct status_options *ret, struct err *e) {
    int code;
    char quoted[80];
    *ret = (struct status_options){0};
    for (int i = 1; i < argc; i++) /* errors in earlier options come out as JSON too */
        ret->json |= strcmp(argv[i], "--json") == 0;
    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, "+:h", flags, NULL)) != -1) {
        if (code == LONG('s'))
            ret->server = optarg;
        else if (code == LONG('k'))
            ret->key_file = optarg;
        else if (code == LONG('S'))
            ret->socket = optarg;
        else if (code == LONG('c'))
            ret->config = optarg;
        else if (code == 'h')
            ret->help = true;
        else if (code != LONG('j'))
            return flags_bad("status", code, argv, flags, e);
    }
    if (optind < argc)
        return err_user(e, "bad_option", "status: takes no argument %s",
                        log_quote(argv[optind], quoted, sizeof quoted));
    if (!ret->socket && !ret->config)
        ret->server = remote_named(ret->server);
    return check_together(ret, e);
}

/* SECURITY: perhaps another machine's words: nothing in them may move the cursor. */
struct word {
    char text[40];
};

static struct word word(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    struct word w;
    snprintf(w.text, sizeof w.text, "%s", s ? s : "?");
    for (char *p = w.text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return w;
}

static long long number(const json_t *o, const char *key) {
    return (long long)json_integer_value(json_object_get(o, key));
}

#define SPAN_MAX 1e12 /* nothing runs for longer; a server can say anything */

/* "3 d 4 h", "5 min 6 s": the two largest units. */
static void print_span(double seconds) {
    static const struct {
        const char *name;
        long size;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    long left = seconds > 0 && seconds < SPAN_MAX ? (long)seconds : 0;
    size_t i = 0;
    while (i < 3 && left < units[i].size)
        i++;
    printf("%ld %s", left / units[i].size, units[i].name);
    if (i < 3)
        printf(" %ld %s", left % units[i].size / units[i + 1].size, units[i + 1].name);
}

static void print_since(const json_t *state) {
    char when[40] = "?";
    struct tm tm;
    if (text_date_here(json_number_value(json_object_get(state, "started")), &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &tm);
    printf("up since    %s (", when);
    print_span(json_number_value(json_object_get(state, "uptime_seconds")));
    puts(")");
}

static void print_restarts(const json_t *state) {
    static const char *const names[] = {"warden", "server", "nurseries", "zygotes", "gate"};
    const json_t *r = json_object_get(state, "restarts");
    const char *before = "restarts    ";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!number(r, names[i]))
            continue;
        printf("%s%s %lld", before, names[i], number(r, names[i]));
        before = ", ";
    }
    if (*before == ',')
        putchar('\n');
}

static void print_problem(const json_t *profile, const char *key) {
    AUTO_BUF plain = BUF_INIT;
    char quoted[400];
    const char *what = json_string_value(json_object_get(profile, key));
    log_quote(what ? what : "", quoted, sizeof quoted);
    text_add_plain(&plain, quoted, strlen(quoted));
    printf("  %s", plain.data);
}

void state_print(const json_t *state, const char *where) {
    size_t i;
    const json_t *p;
    printf("cloche %s at %s\n", word(state, "version").text, where);
    print_since(state);
    printf("running     %lld, waiting %lld\n", number(state, "running"), number(state, "queued"));
    printf("sandboxes   %lld of at most %lld, ready ones included; live %lld\n",
           number(state, "sandboxes"), number(state, "max_sandboxes"),
           number(state, "live_sandboxes"));
    printf("executions  %lld; HTTP requests %lld\n", number(state, "executions"),
           number(state, "requests"));
    printf("memory      %.1f MiB in the server process\n",
           (double)number(state, "memory_bytes") / (1 << 20));
    print_restarts(state);
    if (json_is_string(json_object_get(state, "trouble"))) {
        printf("trouble   ");
        print_problem(state, "trouble");
        putchar('\n');
    }
    printf("\n%-18s %-11s %6s %5s %7s  %s\n", "profile", "state", "ready", "pool", "waiting",
           "live");
    json_array_foreach(json_object_get(state, "profiles"), i, p) {
        struct word how = word(p, "state"), live = word(p, "live");
        printf("%-18s %-11s %6lld %5lld %7lld  %s", word(p, "name").text, how.text,
               number(p, "ready"), number(p, "pool"), number(p, "queued"), live.text);
        if (strcmp(how.text, "broken") == 0)
            print_problem(p, "what");
        else if (strcmp(live.text, "broken") == 0)
            print_problem(p, "live_what");
        putchar('\n');
    }
}
