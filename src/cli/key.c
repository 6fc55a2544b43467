/* `cloche key add|list|revoke`: the API keys of the HTTP service, in one file (keys/keys.h).
 *
 * The server is not asked: it may run or not, and reads the file when it starts and on SIGHUP. What
 * changes the file does so under its lock, from the reading to the writing. */

#include "cli/key.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli/key_file.h"
#include "cli/key_options.h"
#include "cli/key_print.h"
#include "cli/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IDS_SHOWN 8 /* of keys that share a name; more do not fit into an error */

/* Written without stdio: whether it arrived must be known here, since it is kept nowhere. */
static int print_secret(const struct key_options *o, const struct key *k, const char *secret,
                        struct err *e) {
    AUTO_BUF b = BUF_INIT;
    if (o->json)
        key_add_json(&b, k, secret);
    else
        buf_addf(&b, "%s\n", secret);
    int rc = fd_write_all(STDOUT_FILENO, b.data, b.len, e);
    explicit_bzero(b.data, b.len);
    if (rc == 0)
        return 0;
    return err_user(e, "output_failed",
                    "%s was made but its secret could not be printed (%s): revoke it", k->id,
                    strerror(e->code));
}

static int act_add(const struct key_options *o, struct err *e) {
    AUTO_KEY_FILE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    AUTO_KEY made = {0};
    AUTO_FD lock = -1;
    char secret[KEYS_SECRET_SIZE];
    if (key_make(o->operand, o->tenant, &o->limits, &made, secret, e) < 0)
        return -1;
    made.rights = o->rights;
    made.network = o->network ? xstrdup(o->network) : NULL;
    if (key_file_open(o, true, &p, e) < 0 || key_file_load_to_change(&p, &keys, &lock, e) < 0 ||
        keys_add_take(&keys, &made, e) < 0 || key_file_save(&p, &keys, e) < 0)
        return -1;
    const struct key *k = &keys.items[keys.n - 1];
    int rc = print_secret(o, k, secret, e);
    explicit_bzero(secret, sizeof secret);
    if (rc < 0)
        return -1;
    AUTO_BUF said = BUF_INIT;
    buf_addf(&said, "%s for %s (tenant %s): keep this secret, it is shown only once; ", k->id,
             k->name, k->tenant);
    buf_adds(&said, "a running server takes the key up when `cloche serve` gets SIGHUP");
    report_say(said.data);
    return 0;
}

static int act_list(const struct key_options *o, struct err *e) {
    AUTO_KEY_FILE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    bool there;
    if (key_file_open(o, false, &p, e) < 0 || key_file_load(&p, &keys, &there, e) < 0)
        return -1;
    if (o->json) {
        key_print_json(&keys);
        return 0;
    }
    if (!there) {
        AUTO_BUF said = BUF_INIT;
        buf_addf(&said, "there is no file of keys %s/%s yet", p.dir, p.name);
        report_say(said.data);
    }
    key_print_table(&keys);
    return 0;
}

static int ambiguous(const struct keys *keys, const char *name, unsigned n, struct err *e) {
    AUTO_BUF ids = BUF_INIT;
    unsigned shown = 0;
    for (unsigned i = 0; i < keys->n && shown < IDS_SHOWN; i++)
        if (strcmp(keys->items[i].name, name) == 0)
            buf_addf(&ids, "%s%s", shown++ ? ", " : "", keys->items[i].id);
    if (n > shown)
        buf_addf(&ids, " and %u more", n - shown);
    return err_user(e, "ambiguous_key", "%u keys have the name %s: %s", n, name, ids.data);
}

/* An id goes before a name that looks like it. */
static int find_key(const struct keys *keys, const char *word, unsigned *ret, struct err *e) {
    unsigned found = 0, n = 0;
    for (unsigned i = 0; i < keys->n; i++) {
        if (strcmp(keys->items[i].id, word) == 0) {
            *ret = i;
            return 0;
        }
        if (strcmp(keys->items[i].name, word) == 0) {
            found = i;
            n++;
        }
    }
    char quoted[96];
    if (n == 0)
        return err_user(e, "unknown_key", "there is no key with the id or name %s",
                        log_quote(word, quoted, sizeof quoted));
    if (n > 1)
        return ambiguous(keys, word, n, e);
    *ret = found;
    return 0;
}

static int act_revoke(const struct key_options *o, struct err *e) {
    AUTO_KEY_FILE p = {.fd = -1};
    AUTO_KEYS keys = {0};
    AUTO_FD lock = -1;
    unsigned at = 0;
    if (key_file_open(o, false, &p, e) < 0 || key_file_load_to_change(&p, &keys, &lock, e) < 0 ||
        find_key(&keys, o->operand, &at, e) < 0 || at >= keys.n) /* the last for the analyser */
        return -1;
    AUTO_BUF said = BUF_INIT;
    const struct key *k = &keys.items[at];
    if (o->json)
        key_add_json(&said, k, NULL);
    else
        buf_addf(&said, "revoked %s (name %s, tenant %s)\n", k->id, k->name, k->tenant);
    /* The file stays when the last key goes: without one the server would ask for no key. */
    keys_remove(&keys, at);
    if (key_file_save(&p, &keys, e) < 0)
        return -1;
    fputs(said.data, stdout);
    report_say("a running server accepts the key until `cloche serve` gets SIGHUP");
    return 0;
}

/* ------------------------------------------------------------------ the verb */

static const struct action {
    const char *name, *operand; /* operand: what it needs, or NULL */
    int (*fn)(const struct key_options *o, struct err *e);
} actions[] = {
    {"add", "the key's NAME", act_add},
    {"list", NULL, act_list},
    {"revoke", "the key's ID or NAME", act_revoke},
};

static int find_action(const struct key_options *o, const struct action **ret, struct err *e) {
    char quoted[80];
    if (!o->action)
        return err_user(e, "bad_option", "key: say add, list or revoke");
    const struct action *a = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, o->action) == 0)
            a = &actions[i];
    if (!a)
        return err_user(e, "bad_option", "key: %s is none of add, list and revoke",
                        log_quote(o->action, quoted, sizeof quoted));
    if (a->operand && !o->operand)
        return err_user(e, "bad_option", "key %s: %s is missing", a->name, a->operand);
    if (!a->operand && o->operand)
        return err_user(e, "bad_option", "key %s: %s is one word too many", a->name,
                        log_quote(o->operand, quoted, sizeof quoted));
    if (o->only_add && a->fn != act_add)
        return err_user(e, "bad_option", "key %s: --%s is for add only", a->name, o->only_add);
    *ret = a;
    return 0;
}

/* The kinds of failure that only this verb has. */
static int key_fail(const struct err *e, bool json) {
    static const struct failure own[] = {
        {.kind = "bad_keys", .remediation = "mend the file of keys"},
        {.kind = "too_many_keys", .remediation = "revoke those that nobody uses"},
        {.kind = "unknown_key", .remediation = "`cloche key list` lists them"},
        {.kind = "ambiguous_key", .remediation = "name one by its id"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].kind, e->kind) == 0) {
            struct failure f = own[i];
            f.message = e->text;
            return report_failure(&f, json);
        }
    }
    return report(e, json);
}

int verb_key(int argc, char **argv) {
    struct key_options o;
    struct err e;
    if (key_options_parse(argc, argv, &o, &e) < 0)
        return key_fail(&e, o.json);
    if (o.help)
        return key_options_help();
    const struct action *a = NULL;
    if (find_action(&o, &a, &e) < 0 || a->fn(&o, &e) < 0)
        return key_fail(&e, o.json);
    return 0;
}
