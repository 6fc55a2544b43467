/* See report.h. Each kind of failure that the command line itself finds has its remedy in one
 * table; failures that the engine reports bring theirs along. */

#include "cli/report.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/text.h"
#include "wire/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct remedy {
    const char *kind, *text;
    bool retryable;
} remedies[] = {
    {"bad_option", "see --help", false},
    {"port_taken", "end the other program, or choose another port", false},
    {"no_listen", "choose an address of this machine and a port that you may use", false},
    {"no_keys", "make a key with `cloche key add NAME`, or say --without-keys allow", false},
    {"bad_value", "give a value within these bounds", false},
    {"bad_config", "mend the configuration; `cloche config` shows what is in force", false},
    {"bad_json", "mend the configuration file", false},
    {"no_such_file", "check the path", false},
    {"not_readable", "check the permissions", false},
    {"is_directory", "name a file", false},
    {"too_large", "make it smaller", false},
    {"unknown_profile", "`cloche config` lists the profiles", false},
    {"no_engine", "start one with `cloche serve`", true},
    {"no_server", "check the URL, and that `cloche serve` runs there", true},
    {"bad_certificate", "SSL_CERT_FILE names the certificates that are trusted", false},
    {"bad_reply", "check the URL: is that a cloche server?", false},
    {"not_text", "run it with an engine of this machine, without --server", false},
    {"profile_exists", "`cloche profile sync` builds it again; remove it to build another", false},
    {"profile_in_use", "end them, or say --force: they go on, and it goes after them", true},
    {"build_running", "wait for that", true},
    {"build_failed", "nothing was changed; mend that and try again", false},
    {"engine_running", "stop that one first, or name another socket with --socket", false},
    {"engine_gone", "run it again; its log says more", true},
    {"below_minimum", "`cloche doctor` says how to get it; `--minimum` says what must be there",
     false},
    {"engine_failed", "`cloche doctor` checks this machine", false},
    {"foreign_path", "name a directory that is yours alone, or remove what is there", false},
    {"no_privilege", "run as the user who started the engine, or start one of your own", false},
    {"output_failed", "make room, or name another place", false},
    {"interrupted", "run it again", true},
};

static const struct remedy *find_remedy(const char *kind) {
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (strcmp(remedies[i].kind, kind) == 0)
            return &remedies[i];
    static const struct remedy none = {"internal", "please report this", false};
    return &none;
}

bool report_wants_json(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

void report_say(const char *text) {
    AUTO_BUF line = BUF_INIT;
    buf_adds(&line, "cloche: ");
    text_add_plain(&line, text, strlen(text));
    buf_addc(&line, '\n');
    struct err ignored;
    (void)fd_write_all(STDERR_FILENO, line.data, line.len, &ignored);
}

static void add_with_flag(struct buf *to, const char *line, size_t len) {
    for (size_t i = 0; i < LIMITS_; i++) {
        char name[64];
        size_t n = (size_t)snprintf(name, sizeof name, "(%s)", limits_info[i].name);
        if (len >= n && memcmp(line + len - n, name, n) == 0) {
            buf_add(to, line, len - n);
            buf_addf(to, "(%s)", limits_info[i].flag);
            return;
        }
    }
    buf_add(to, line, len);
}

void report_notes(const char *lines) {
    while (*lines) {
        AUTO_BUF line = BUF_INIT;
        size_t len = strcspn(lines, "\n");
        add_with_flag(&line, lines, len);
        if (line.len)
            report_say(line.data);
        lines += len + (lines[len] == '\n');
    }
}

static void write_json(const struct failure *f) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    jw_key(&j, "error");
    jw_object(&j);
    jw_key_str(&j, "code", f->kind);
    jw_key_str(&j, "message", f->message);
    jw_key_str(&j, "remediation", f->remediation);
    jw_key_bool(&j, "retryable", f->retryable);
    jw_object_end(&j);
    jw_object_end(&j);
    buf_addc(&b, '\n');
    struct err ignored;
    (void)fd_write_all(STDOUT_FILENO, b.data, b.len, &ignored);
}

int report_failure(const struct failure *f, bool json) {
    AUTO_BUF line = BUF_INIT;
    buf_adds(&line, f->message);
    /* A refused value comes with what is allowed; that is remedy enough for one line. */
    if (f->remediation[0] && strcmp(f->kind, "bad_value") != 0)
        buf_addf(&line, "; %s", f->remediation);
    report_say(line.data);
    if (json)
        write_json(f);
    return EXIT_CLOCHE;
}

int report(const struct err *e, bool json) {
    const struct remedy *r = find_remedy(e->kind);
    struct failure f = {r->kind, e->text, r->text, r->retryable};
    return report_failure(&f, json);
}

int report_bad_verb(const char *of, const struct nearest *near, const char *all, struct err *e) {
    char quoted[64], question[64];
    return err_user(e, "bad_option", "%sthere is no verb %s%s: there are %s", of,
                    log_quote(near->word, quoted, sizeof quoted),
                    nearest_ask(near, question, sizeof question), all);
}
