/* See probe.h. Nothing is concluded from version numbers or files where it can be tried:
 * probe_trial.c tries, and the words for what it saw are made here. */

#include "sandbox/probe.h"

#include "sandbox/cores.h"
#include "sandbox/diagnose.h"
#include "sandbox/landlock.h"
#include "sandbox/probe_trial.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANDLOCK_WHOLE = 6 }; /* the ABI that also scopes signals and abstract sockets */

/* ------------------------------------------------------------------ names */

enum { NAMED, STRICT };

static const struct {
    const char *name;
    bool is_strict;
    const char *what, *works, *lost;
} layer_words[] = {
#define X(name, minimum, what, works, lost) {#name, minimum, what, works, lost},
    PROBE_LAYERS(X)
#undef X
};

const char *probe_layer_name(enum probe_layer l) {
    return layer_words[l].name;
}

const char *probe_layer_what(enum probe_layer l) {
    return layer_words[l].what;
}

const char *probe_layer_lost(enum probe_layer l) {
    return layer_words[l].lost;
}

static uint32_t bit(enum probe_layer l) {
    return UINT32_C(1) << l;
}

static uint32_t strict_layers(void) {
    uint32_t layers = 0;
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        layers |= layer_words[l].is_strict ? bit(l) : 0;
    return layers;
}

static uint32_t word_layers(const char *word, size_t len) {
    if (len == strlen("strict") && memcmp(word, "strict", len) == 0)
        return strict_layers();
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (len == strlen(layer_words[l].name) && memcmp(word, layer_words[l].name, len) == 0)
            return bit(l);
    return 0;
}

int probe_minimum(const char *minimum, uint32_t *ret_layers, struct err *e) {
    static const char sep[] = " ,\t\n";
    uint32_t layers = 0;
    bool any = false;
    for (const char *s = minimum + strspn(minimum, sep); *s; s += strspn(s, sep)) {
        size_t len = strcspn(s, sep);
        uint32_t found = word_layers(s, len);
        if (!found && !(len == strlen("none") && memcmp(s, "none", len) == 0))
            return err_user(e, "bad_config",
                            "minimum: there is no layer \"%.*s\" (strict, none, or names as "
                            "`cloche doctor` lists them)",
                            (int)(len > 40 ? 40 : len), s);
        layers |= found;
        any = true;
        s += len;
    }
    /* SECURITY: an empty value is more likely a mistake than a wish to go without walls. */
    if (!any)
        return err_user(e, "bad_config", "minimum: it is empty; say \"none\" to require nothing");
    *ret_layers = layers;
    return 0;
}

/* ------------------------------------------------------------------ telling */

static void tell_failure(struct probe_result *r, const struct probe_trial *t) {
    struct diagnosis d;
    r->state = PROBE_MISSING;
    if (diagnose_find(t->step, t->errnum, &d)) {
        memcpy(r->how, d.cause, sizeof r->how);
        memcpy(r->fix, d.fix, sizeof r->fix);
        return;
    }
    snprintf(r->how, sizeof r->how, "it was refused: %s", strerror(t->errnum));
    snprintf(r->fix, sizeof r->fix,
             "ask whoever runs this machine; `dmesg` and `journalctl -k` may name the rule");
}

/* What could not be tried since another layer is missing says which one, and takes over its fix. */
static void tell_untried(struct probe *p, enum probe_layer l) {
    static const enum probe_layer below[] = {PROBE_user_ns, PROBE_pid_ns, PROBE_mount_ns,
                                             PROBE_net_ns};
    struct probe_result *r = &p->layers[l];
    struct diagnosis d;
    r->state = PROBE_MISSING;
    snprintf(r->how, sizeof r->how, "it could not be tried: the child that tries it ended early");
    snprintf(r->fix, sizeof r->fix, "see `dmesg` for what killed it, and the limits on processes");
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const struct probe_result *other = &p->layers[below[i]];
        if (below[i] == l || other->state == PROBE_OK)
            continue;
        snprintf(r->how, sizeof r->how, "not tried without a %s", layer_words[below[i]].what);
        memcpy(r->fix, other->fix, sizeof r->fix);
        break;
    }
    /* One obstacle may hide the next: this one can be seen without trying. */
    if (l == PROBE_proc &&
        (diagnose_find(DIAGNOSE_MOUNT_PROC, ENOENT, &d) ||
         (diagnose_find(DIAGNOSE_MOUNT_PROC, EPERM, &d) && strstr(d.cause, "masked")))) {
        memcpy(r->how, d.cause, sizeof r->how);
        memcpy(r->fix, d.fix, sizeof r->fix);
    }
}

static void tell_user_ns(struct probe *p, const struct probe_trials *t, const struct idmap *ids,
                         const struct err *map_err) {
    struct probe_result *r = &p->layers[PROBE_user_ns];
    if (!probe_trial_works(t, PROBE_user_ns))
        return;
    if (probe_trial_works(t, PROBE_ids)) {
        snprintf(r->how, sizeof r->how, "root inside is uid %u outside", ids->uid);
        return;
    }
    struct diagnosis d = {.fix = "see /etc/subuid and /etc/subgid"};
    const struct probe_trial *ids_trial = &t->layers[PROBE_ids];
    snprintf(d.cause, sizeof d.cause, "%.150s",
             map_err->code ? map_err->text : strerror(ids_trial->errnum));
    diagnose_find(DIAGNOSE_WRITE_UID_MAP, map_err->code ? map_err->code : ids_trial->errnum, &d);
    r->state = PROBE_MISSING;
    snprintf(r->how, sizeof r->how, "made, but its ids cannot be used: %.110s", d.cause);
    memcpy(r->fix, d.fix, sizeof r->fix);
}

static void tell_ids(struct probe *p, const struct probe_trials *t, const struct idmap *ids) {
    struct probe_result *r = &p->layers[PROBE_ids];
    if (!probe_trial_works(t, PROBE_ids)) {
        *r = p->layers[PROBE_user_ns];
    } else if (ids->single) {
        r->state = PROBE_WEAK;
        snprintf(r->how, sizeof r->how, "one id for all: %u", ids->uid);
        snprintf(r->fix, sizeof r->fix, "%s", ids->why);
    } else {
        *r = (struct probe_result){.state = ids->odd[0] ? PROBE_WEAK : PROBE_OK};
        snprintf(r->how, sizeof r->how, "%u ids from %u on%s%s%.80s", ids->count, ids->uid,
                 ids->helper ? ", mapped by newuidmap" : "", ids->odd[0] ? "; " : "", ids->odd);
        if (ids->odd[0])
            snprintf(r->fix, sizeof r->fix, "%s", ids->why);
    }
}

static void tell_landlock(struct probe_result *r) {
    int abi = landlock_abi();
    if (abi > 0) {
        r->state = abi >= LANDLOCK_WHOLE ? PROBE_OK : PROBE_WEAK;
        snprintf(r->how, sizeof r->how, "ABI %d", abi);
        if (r->state == PROBE_WEAK)
            snprintf(r->fix, sizeof r->fix, "Linux 6.12 or newer has ABI %d", LANDLOCK_WHOLE);
        return;
    }
    r->state = PROBE_MISSING;
    long got = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (got < 0 && errno == EOPNOTSUPP) {
        snprintf(r->how, sizeof r->how, "in the kernel, but not turned on at boot");
        snprintf(r->fix, sizeof r->fix,
                 "boot with lsm=landlock,… : put landlock first in the list that "
                 "/sys/kernel/security/lsm shows");
    } else {
        snprintf(r->how, sizeof r->how, "not in this kernel, or a filter on us hides it");
        snprintf(
            r->fix, sizeof r->fix,
            "Linux 6.12 or newer with CONFIG_SECURITY_LANDLOCK=y and landlock in lsm= at boot");
    }
}

static void tell_egress(struct probe_result *r, const struct egress_finding *f, bool single) {
    if (!f->fact && single && landlock_abi() < LANDLOCK_WHOLE) {
        r->state = PROBE_WEAK;
        snprintf(r->how, sizeof r->how,
                 "held, answered and failed; with one id for all, and Landlock below ABI %d, a "
                 "program can end the connections of its own sandbox",
                 LANDLOCK_WHOLE);
        snprintf(r->fix, sizeof r->fix, "as for the layers ids and landlock; nothing else is open");
        return;
    }
    if (!f->fact) {
        snprintf(r->how, sizeof r->how, "held, answered and failed");
        return;
    }
    r->state = PROBE_MISSING;
    snprintf(r->how, sizeof r->how, "fact %d does not hold: %s (%s)", f->fact, egress_fact(f->fact),
             strerror(f->errnum));
    snprintf(r->fix, sizeof r->fix,
             "policies for the network are refused here; Linux 6.1 or newer with CONFIG_INET_DIAG "
             "and CONFIG_INET_TCP_DIAG has all facts");
}

static void tell_cores(struct probe_result *r) {
    cores_allow_limit(); /* as the warden does */
    if (cores_can_be_kept()) {
        snprintf(r->how, sizeof r->how, "limit of 1");
    } else if (!cores_are_piped(CORES_PATTERN)) {
        snprintf(r->how, sizeof r->how, "limit of 0, and the host does not pipe them");
    } else {
        r->state = PROBE_MISSING;
        snprintf(r->how, sizeof r->how, "the hard limit is 0, and " CORES_PATTERN " is a pipe");
        snprintf(r->fix, sizeof r->fix,
                 "start with a hard limit of core dumps of at least 1: LimitCORE=1 in a unit, "
                 "`Defaults rlimit_core=1` in sudoers, --ulimit core=1 for a container");
    }
}

static void tell_all(struct probe *p, const struct probe_trials *t, const struct idmap *ids,
                     const struct err *map_err) {
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        struct probe_result *r = &p->layers[l];
        if (l == PROBE_egress)
            continue;
        if (probe_trial_works(t, l))
            snprintf(r->how, sizeof r->how, "%s", layer_words[l].works);
        else if (t->layers[l].tried)
            tell_failure(r, &t->layers[l]);
        if (l == PROBE_user_ns)
            tell_user_ns(p, t, ids, map_err);
    }
    tell_landlock(&p->layers[PROBE_landlock]);
    tell_cores(&p->layers[PROBE_cores]);
    if (t->layers[PROBE_egress].tried)
        tell_egress(&p->layers[PROBE_egress], &t->egress, ids->single);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (!t->layers[l].tried && l != PROBE_landlock && l != PROBE_cores)
            tell_untried(p, l);
    tell_ids(p, t, ids);
    struct probe_result *groups = &p->layers[PROBE_cgroup];
    struct diagnosis d;
    if (t->layers[PROBE_cgroup].tried)
        *groups = t->cgroup;
    if (groups->state != PROBE_OK && diagnose_find(DIAGNOSE_MOUNT_PROC, ENOENT, &d))
        memcpy(groups->fix, d.fix, sizeof groups->fix); /* they are found through /proc */
}

static void probe_with(const struct idmap *ids, enum cgroup_kind want,
                       const struct cgroup_root *have, struct probe *ret) {
    struct probe p = {0};
    struct err map_err = {0};
    struct probe_trials none = {0};
    const struct probe_request q = {.ids = ids, .want = want, .have = have};
    struct probe_trials *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t != MAP_FAILED)
        probe_trials_run(t, &q, &map_err);
    tell_all(&p, t != MAP_FAILED ? t : &none, ids, &map_err);
    if (t != MAP_FAILED)
        munmap(t, sizeof *t);
    *ret = p;
}

void probe_run(const struct idmap *ids, enum cgroup_kind want_cgroup, struct probe *ret) {
    probe_with(ids, want_cgroup, NULL, ret);
}

void probe_run_with(const struct idmap *ids, const struct cgroup_root *groups, struct probe *ret) {
    probe_with(ids, groups->kind, groups, ret);
}

int probe_check(const struct probe *p, uint32_t need, struct err *e) {
    char names[160] = "";
    const struct probe_result *first = NULL;
    enum probe_layer worst = PROBE_LAYERS_;
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        if (!(need & bit(l)) || p->layers[l].state == PROBE_OK)
            continue;
        size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", layer_words[l].name);
        if (!first) {
            first = &p->layers[l];
            worst = l;
        }
    }
    if (!first)
        return 0;
    return err_user(e, "below_minimum",
                    "this machine is below the minimum of isolation: %s; %s: %.90s; to do: %.160s",
                    names, layer_words[worst].name, first->how, first->fix);
}
