/* `cloche doctor`: what isolation this machine gives, what is missing, what that costs and how to
 * get it; whether the configured minimum is met and the profiles work (exit status 0 or 1); the
 * machine and the profiles, which are tried (trial.h).
 *
 * Everything is gathered into struct findings first and then printed, as text or as JSON: both say
 * the same. It must work on the worst of machines (no /proc, no privilege), so nothing here but a
 * bad command line or configuration is a reason to stop. */

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "config/options.h"
#include "config/paths.h"
#include "config/resolve.h"
#include "sandbox/diagnose.h"
#include "sandbox/idmap.h"
#include "sandbox/probe.h"
#include "supervisor/trial.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MAX_DIRS 8

struct machine {
    char kernel[80], user[40], huge_pages[16];
    unsigned cores;
    uint64_t memory_mb;
};

struct profile_state {
    const struct config_profile *profile; /* borrowed: the configuration's */
    bool python;                          /* the interpreter is there */
    char version[16];                     /* "3.11", or "" when its name does not tell */
    struct buf missing;                   /* modules that were not found, with spaces between */
    const char **gone; /* owned, the strings borrowed: paths that it shows and that are not there */
    unsigned ngone;
    struct trial trial;
};

struct findings {
    struct probe probe;
    uint32_t need, unmet; /* bit sets of layers */
    const char *minimum;  /* borrowed: the configuration's */
    struct machine machine;
    struct profile_state profiles[CONFIG_MAX_PROFILES];
    unsigned nprofiles;
    char untried[300]; /* why no profile was tried, or "" */
};

static const char *const state_words[] = {
    [PROBE_OK] = "ok", [PROBE_WEAK] = "weak", [PROBE_MISSING] = "missing"};

/* ------------------------------------------------------------------ gathering */

/* The word in brackets: "always [madvise] never". */
static void read_huge_pages(char *out, size_t cap) {
    char text[128];
    struct err ignored;
    snprintf(out, cap, "unknown");
    if (file_read_at(AT_FDCWD, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text,
                     &ignored) < 0)
        return;
    const char *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;
    if (end)
        snprintf(out, cap, "%.*s", (int)(end - open - 1), open + 1);
}

static void look_at_machine(struct machine *m) {
    struct utsname u;
    struct sysinfo si;
    if (uname(&u) == 0)
        snprintf(m->kernel, sizeof m->kernel, "%.70s", u.release);
    struct passwd *pw = getpwuid(geteuid());
    snprintf(m->user, sizeof m->user, "%.30s", pw ? pw->pw_name : "?");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    m->cores = cores > 0 ? (unsigned)cores : 1;
    if (sysinfo(&si) == 0)
        m->memory_mb = (uint64_t)si.totalram * si.mem_unit >> 20;
    read_huge_pages(m->huge_pages, sizeof m->huge_pages);
}

/* Where this interpreter looks for modules, told from its path: starting it would take longer than
 * all the rest. The version may be "3*", a pattern. */
static unsigned module_dirs(const struct config_profile *p, const char *version,
                            char dirs[MAX_DIRS][PATH_MAX]) {
    char prefixes[2][PATH_MAX] = {"", ""};
    unsigned n = 0;
    snprintf(prefixes[0], PATH_MAX, "%s", p->python); /* a venv, where the path is a link */
    if (!realpath(p->python, prefixes[1]))
        prefixes[1][0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        char *slash;
        for (int up = 0; up < 2 && (slash = strrchr(prefixes[i], '/')); up++)
            *slash = '\0';
        static const char *const tails[] = {"", "/lib-dynload", "/site-packages"};
        for (size_t k = 0; k < 3 && n < MAX_DIRS; k++)
            snprintf(dirs[n++], PATH_MAX, "%.1000s/lib/python%s%s", prefixes[i], version, tails[k]);
    }
    if (strcmp(prefixes[1], "/usr") == 0) {
        snprintf(dirs[n++], PATH_MAX, "/usr/lib/python3/dist-packages");
        snprintf(dirs[n++], PATH_MAX, "/usr/local/lib/python%s/dist-packages", version);
    }
    return n;
}

/* A package, a source file or an extension of that name. */
static bool module_in(const char *dir, const char *name) {
    static const char *const forms[] = {"", ".py", ".*so"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        AUTO_BUF pattern = BUF_INIT;
        buf_addf(&pattern, "%s/%s%s", dir, name, forms[i]);
        glob_t found;
        int rc = glob(pattern.data, GLOB_NOSORT, NULL, &found);
        globfree(&found);
        if (rc == 0)
            return true;
    }
    return false;
}

/* Is `word` one of the words in `list`, which have spaces between? */
static bool has_word(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p++)
        if ((p == list || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
            return true;
    return false;
}

/* Modules that a Python may have built in, without any file. */
static const char built_in_modules[] =
    "array atexit binascii builtins cmath errno faulthandler fcntl gc grp itertools marshal math "
    "posix pwd pyexpat select signal sys syslog time unicodedata zlib";

static bool module_found(const struct config_profile *p, char dirs[MAX_DIRS][PATH_MAX], unsigned n,
                         const char *name) {
    for (unsigned i = 0; i < p->sites.n; i++)
        if (module_in(p->sites.items[i], name))
            return true;
    for (unsigned i = 0; i < n; i++)
        if (module_in(dirs[i], name))
            return true;
    return has_word(built_in_modules, name);
}

static void look_for_paths(const struct config_list *paths, struct profile_state *s) {
    for (unsigned i = 0; i < paths->n; i++)
        if (access(paths->items[i], F_OK) < 0)
            s->gone[s->ngone++] = paths->items[i];
}

static void look_at_profile(const struct config_profile *p, struct profile_state *s) {
    char real[PATH_MAX], dirs[MAX_DIRS][PATH_MAX];
    *s = (struct profile_state){.profile = p,
                                .python = access(p->python, X_OK) == 0,
                                .missing = BUF_INIT,
                                .gone = xcalloc(p->sites.n + p->binds.n + 1, sizeof *s->gone)};
    look_for_paths(&p->sites, s);
    look_for_paths(&p->binds, s);
    if (!s->python)
        return;
    const char *base = realpath(p->python, real) ? strrchr(real, '/') + 1 : "";
    if (strncmp(base, "python3.", 8) == 0 && base[8] >= '0' && base[8] <= '9')
        snprintf(s->version, sizeof s->version, "3.%.*s", (int)strspn(base + 8, "0123456789"),
                 base + 8);
    unsigned n = module_dirs(p, *s->version ? s->version : "3*", dirs);
    for (unsigned i = 0; i < p->preload.n; i++) {
        AUTO_BUF top = BUF_INIT;
        buf_add(&top, p->preload.items[i], strcspn(p->preload.items[i], "."));
        if (!module_found(p, dirs, n, top.data) && !has_word(s->missing.data, top.data))
            buf_addf(&s->missing, "%s%s", s->missing.len ? " " : "", top.data);
    }
}

static void profile_state_done(struct profile_state *s) {
    buf_done(&s->missing);
    free(s->gone);
}

static enum cgroup_kind cgroup_wish(const char *word) {
    if (strcmp(word, "v2") == 0)
        return CGROUP_V2;
    return strcmp(word, "v1") == 0 ? CGROUP_V1 : CGROUP_NONE;
}

/* Files of id ranges that make no sense: the engine would not start, so this is not a matter of the
 * minimum. */
static void ids_are_broken(struct findings *f, const struct err *e) {
    struct probe_result *r = &f->probe.layers[PROBE_ids];
    *r = (struct probe_result){.state = PROBE_MISSING,
                               .fix = "mend that line: name:first:count, first > 0"};
    snprintf(r->how, sizeof r->how, "%.150s", e->text);
    f->need |= 1u << PROBE_ids;
}

static void look_at_layers(const struct config *c, struct findings *f) {
    struct idmap ids;
    struct err e, ignored;
    bool broken = idmap_find(c->id_user, &ids, &e) < 0;
    if (broken && idmap_find_in("", "", "", geteuid(), &ids, &ignored) < 0)
        return;
    probe_run(&ids, cgroup_wish(c->cgroup), &f->probe);
    if (strcmp(c->cgroup, "none") == 0)
        f->probe.layers[PROBE_cgroup] = (struct probe_result){
            PROBE_WEAK, "switched off by the setting cgroup", "set cgroup to auto"};
    if (broken)
        ids_are_broken(f, &e);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (f->need & 1u << l && f->probe.layers[l].state != PROBE_OK)
            f->unmet |= 1u << l;
}

/* Starts each, in its walls: that a file is there says little of whether it can be imported. */
static void try_profiles(struct config *c, struct findings *f) {
    struct trial trials[CONFIG_MAX_PROFILES] = {0};
    struct err e;
    AUTO_BUF warden = BUF_INIT;
    buf_addf(&warden, "%s/cloche-warden", c->libexec);
    if (f->unmet)
        snprintf(f->untried, sizeof f->untried, "the minimum is not met");
    else if (access(warden.data, X_OK) < 0)
        snprintf(f->untried, sizeof f->untried, "cloche-warden is not beside this program");
    else if (trial_run(c, trials, f->nprofiles, &e) < 0)
        snprintf(f->untried, sizeof f->untried, "the engine does not start: %.200s", e.text);
    for (unsigned i = 0; i < f->nprofiles; i++)
        f->profiles[i].trial = trials[i];
}

static bool has_broken(const struct findings *f) {
    bool broken = strncmp(f->untried, "the engine ", 11) == 0;
    for (unsigned i = 0; i < f->nprofiles; i++)
        broken |= f->profiles[i].trial.programs.state == TRIAL_BROKEN ||
                  f->profiles[i].trial.live.state == TRIAL_BROKEN;
    return broken;
}

/* ------------------------------------------------------------------ JSON */

static void write_half(struct jw *j, const char *key, const char *why_key,
                       const struct trial_half *h) {
    if (h->state == TRIAL_NONE || h->state == TRIAL_OFF)
        jw_key_null(j, key);
    else
        jw_key_bool(j, key, h->state == TRIAL_READY);
    jw_key_str(j, why_key, h->state == TRIAL_BROKEN ? h->why : NULL);
}

static void write_layer_names(struct jw *j, const char *key, uint32_t layers) {
    jw_key(j, key);
    jw_array(j);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (layers & 1u << l)
            jw_str(j, probe_layer_name(l));
    jw_array_end(j);
}

static void write_layers(struct jw *j, const struct findings *f) {
    jw_key(j, "layers");
    jw_array(j);
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        const struct probe_result *r = &f->probe.layers[l];
        bool ok = r->state == PROBE_OK;
        jw_object(j);
        jw_key_str(j, "name", probe_layer_name(l));
        jw_key_str(j, "what", probe_layer_what(l));
        jw_key_str(j, "state", state_words[r->state]);
        jw_key_bool(j, "required", f->need & 1u << l);
        jw_key_str(j, "how", r->how);
        jw_key_str(j, "cost", ok ? NULL : probe_layer_lost(l));
        jw_key_str(j, "fix", ok ? NULL : r->fix);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void write_machine(struct jw *j, const struct machine *m) {
    jw_key(j, "machine");
    jw_object(j);
    jw_key_str(j, "kernel", m->kernel);
    jw_key_str(j, "container", diagnose_container());
    jw_key_str(j, "user", m->user);
    jw_key_uint(j, "uid", geteuid());
    jw_key_uint(j, "cores", m->cores);
    jw_key_uint(j, "memory_mb", m->memory_mb);
    jw_key_str(j, "transparent_huge_pages", m->huge_pages);
    jw_object_end(j);
}

static void write_profiles(struct jw *j, const struct findings *f) {
    jw_key(j, "profiles");
    jw_array(j);
    for (unsigned i = 0; i < f->nprofiles; i++) {
        const struct profile_state *s = &f->profiles[i];
        jw_object(j);
        jw_key_str(j, "name", s->profile->name);
        jw_key_str(j, "python", s->profile->python);
        jw_key_bool(j, "found", s->python);
        jw_key_str(j, "version", *s->version ? s->version : NULL);
        jw_key(j, "missing_modules");
        jw_array(j);
        AUTO_FREE char *names = xstrdup(s->missing.data);
        for (char *rest = names, *name; (name = strsep(&rest, " "));)
            if (*name)
                jw_str(j, name);
        jw_array_end(j);
        jw_key(j, "missing_paths");
        jw_array(j);
        for (unsigned k = 0; k < s->ngone; k++)
            jw_str(j, s->gone[k]);
        jw_array_end(j);
        write_half(j, "works", "problem", &s->trial.programs);
        write_half(j, "live_works", "live_problem", &s->trial.live);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void print_json(const struct findings *f) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    jw_key_str(&j, "version", CLOCHE_VERSION);
    jw_key(&j, "minimum");
    jw_object(&j);
    jw_key_str(&j, "configured", f->minimum);
    jw_key_bool(&j, "met", !f->unmet);
    write_layer_names(&j, "layers", f->need);
    write_layer_names(&j, "unmet", f->unmet);
    jw_object_end(&j);
    write_layers(&j, f);
    write_machine(&j, &f->machine);
    write_profiles(&j, f);
    jw_key_str(&j, "profiles_untried", *f->untried ? f->untried : NULL);
    jw_object_end(&j);
    puts(b.data);
}

/* ------------------------------------------------------------------ text */

static const char *colour(enum probe_state state) {
    static const char *const codes[] = {
        [PROBE_OK] = "\033[32m", [PROBE_WEAK] = "\033[33m", [PROBE_MISSING] = "\033[31m"};
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    bool plain = !isatty(STDOUT_FILENO) || (no && *no) || !term || strcmp(term, "dumb") == 0;
    return plain ? "" : codes[state];
}

static const char *colour_end(void) {
    return *colour(PROBE_OK) ? "\033[0m" : "";
}

static void print_machine(const struct machine *m) {
    printf("cloche %s on Linux %s", CLOCHE_VERSION, m->kernel);
    if (*diagnose_container())
        printf(" (%s)", diagnose_container());
    printf(", as %s (uid %u), %u core%s, %llu MiB of memory, transparent huge pages: %s\n\n",
           m->user, (unsigned)geteuid(), m->cores, m->cores == 1 ? "" : "s",
           (unsigned long long)m->memory_mb, m->huge_pages);
}

static void print_layers(const struct findings *f) {
    printf("%-13s %-8s %s\n", "layer", "state", "how");
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        const struct probe_result *r = &f->probe.layers[l];
        printf("%-13s %s%-8s%s %s\n", probe_layer_name(l), colour(r->state), state_words[r->state],
               colour_end(), r->how);
    }
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++) {
        const struct probe_result *r = &f->probe.layers[l];
        if (r->state == PROBE_OK)
            continue;
        printf("\n%s%s is %s%s (%s)\n", colour(r->state), probe_layer_name(l),
               state_words[r->state], colour_end(), probe_layer_what(l));
        printf("  cost: %s\n  fix:  %s\n", probe_layer_lost(l), r->fix);
    }
}

static void print_missing_modules(const struct profile_state *s) {
    printf(", not found: %s\n", s->missing.data);
    if (strncmp(s->profile->python, "/usr/bin/", 9) != 0) {
        printf("  fix:  %s -m pip install PACKAGES\n", s->profile->python);
        return;
    }
    printf("  fix:  as root: apt install");
    size_t len;
    for (const char *c = s->missing.data; *c; c += len + (c[len] == ' ')) {
        len = strcspn(c, " ");
        bool pil = len == 3 && memcmp(c, "PIL", 3) == 0;
        printf(" python3-%.*s", pil ? 3 : (int)len, pil ? "pil" : c);
    }
    putchar('\n');
}

static void print_half(const char *what, const struct trial_half *h) {
    AUTO_BUF why = BUF_INIT;
    if (h->state == TRIAL_READY)
        printf("  %s: %sstarts, and imports all of it%s\n", what, colour(PROBE_OK), colour_end());
    if (h->state == TRIAL_OFF)
        printf("  %s: off, there are too few ids\n", what);
    if (h->state != TRIAL_BROKEN)
        return;
    text_add_plain(&why, h->why, strlen(h->why));
    printf("  %s: %sdoes not work%s: %s\n", what, colour(PROBE_MISSING), colour_end(), why.data);
}

static void print_profiles(const struct findings *f) {
    putchar('\n');
    for (unsigned i = 0; i < f->nprofiles; i++) {
        const struct profile_state *s = &f->profiles[i];
        printf("profile %s: %s", s->profile->name, s->profile->python);
        if (!s->python) {
            printf(" is not there or not executable\n  fix:  install it, or name another python "
                   "for this profile\n");
            continue;
        }
        if (*s->version)
            printf(" (Python %s)", s->version);
        if (s->missing.len)
            print_missing_modules(s);
        else
            printf(", all of its %u modules found\n", s->profile->preload.n);
        for (unsigned k = 0; k < s->ngone; k++)
            printf("  %s is not there\n  fix:  make it, or take it out of the profile's sites or "
                   "read_only\n",
                   s->gone[k]);
        print_half("programs", &s->trial.programs);
        print_half("live kernels", &s->trial.live);
    }
    if (*f->untried)
        printf("the profiles were not tried: %s\n", f->untried);
}

static void print_verdict(const struct findings *f) {
    if (!f->unmet) {
        if (has_broken(f))
            printf("\n%snot every profile works%s\n", colour(PROBE_MISSING), colour_end());
        printf("\n%sthe minimum (%s) is met%s\n", colour(PROBE_OK), f->minimum, colour_end());
        return;
    }
    printf("\n%sthe minimum (%s) is not met, so nothing will run%s; not given:",
           colour(PROBE_MISSING), f->minimum, colour_end());
    for (enum probe_layer l = 0; l < PROBE_LAYERS_; l++)
        if (f->unmet & 1u << l)
            printf(" %s", probe_layer_name(l));
    putchar('\n');
}

/* ------------------------------------------------------------------ the verb */

static int print_help(void) {
    puts(
        "cloche doctor [--json] [--minimum LIST] [--config FILE] [SETTINGS]\n\n"
        "Checks every layer of isolation on this machine: what is in force, what is missing,\n"
        "what that costs and what to do about it. Then tries every profile: starts its Python in\n"
        "its walls and imports its modules, for programs and for live kernels. Exit status 0: the\n"
        "minimum is met and all profiles work, 1: not so, 125: a mistake in the command line or\n"
        "the configuration.\n\n"
        "LIST is strict (all but ids, cgroup and landlock), none, or names of layers with commas\n"
        "between; strict,cgroup adds one.");
    return 0;
}

int verb_doctor(int argc, char **argv) {
    bool json = false, help = false;
    const struct verb_flag flags[] = {{"json", &json}, {"help", &help}, {0}};
    AUTO_OPTIONS o = options_new();
    struct err e;
    if (options_parse(o, argc, argv, flags, &e) < 0)
        return report(&e, json);
    if (help)
        return print_help();
    /* Where our programs are is found through /proc, which may be missing: then none is started. */
    AUTO_FREE char *libexec = NULL;
    if (paths_libexec(&libexec, &e) < 0 && options_set_flag(o, "libexec", "/", &e) < 0)
        return report(&e, json);
    struct config c;
    if (options_load(o, &e) < 0 || options_resolve(o, &c, &e) < 0)
        return report(&e, json);

    struct findings f = {.minimum = c.minimum, .nprofiles = config_named(&c, c.nprofiles)};
    if (probe_minimum(c.minimum, &f.need, &e) < 0) {
        config_done(&c);
        return report(&e, json);
    }
    look_at_layers(&c, &f);
    look_at_machine(&f.machine);
    for (unsigned i = 0; i < f.nprofiles; i++)
        look_at_profile(&c.profiles[i], &f.profiles[i]);
    try_profiles(&c, &f);
    if (json) {
        print_json(&f);
    } else {
        print_machine(&f.machine);
        print_layers(&f);
        print_profiles(&f);
        print_verdict(&f);
    }
    for (unsigned i = 0; i < f.nprofiles; i++)
        profile_state_done(&f.profiles[i]);
    config_done(&c);
    return f.unmet || has_broken(&f) ? 1 : 0;
}
