/* See doctor_look.h. */

#include "cli/doctor_look.h"

#include "base/fd.h"
#include "sandbox/idmap.h"

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

static void look_at_machine(struct doctor_machine *m) {
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

static void look_for_paths(const struct config_list *paths, struct doctor_profile *s) {
    for (unsigned i = 0; i < paths->n; i++)
        if (access(paths->items[i], F_OK) < 0)
            s->gone[s->ngone++] = paths->items[i];
}

static void look_at_profile(const struct config_profile *p, struct doctor_profile *s) {
    char real[PATH_MAX], dirs[MAX_DIRS][PATH_MAX];
    *s = (struct doctor_profile){.profile = p,
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

static void profile_state_done(struct doctor_profile *s) {
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
static void ids_are_broken(struct doctor_findings *f, const struct err *e) {
    struct probe_result *r = &f->probe.layers[PROBE_ids];
    *r = (struct probe_result){.state = PROBE_MISSING,
                               .fix = "mend that line: name:first:count, first > 0"};
    snprintf(r->how, sizeof r->how, "%.150s", e->text);
    f->need |= 1u << PROBE_ids;
}

static void look_at_layers(const struct config *c, struct doctor_findings *f) {
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
static void try_profiles(struct config *c, struct doctor_findings *f) {
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

bool doctor_has_broken(const struct doctor_findings *f) {
    bool broken = strncmp(f->untried, "the engine ", 11) == 0;
    for (unsigned i = 0; i < f->nprofiles; i++)
        broken |= f->profiles[i].trial.programs.state == TRIAL_BROKEN ||
                  f->profiles[i].trial.live.state == TRIAL_BROKEN;
    return broken;
}

void doctor_look(struct config *c, struct doctor_findings *f) {
    look_at_layers(c, f);
    look_at_machine(&f->machine);
    for (unsigned i = 0; i < f->nprofiles; i++)
        look_at_profile(&c->profiles[i], &f->profiles[i]);
    try_profiles(c, f);
}

void doctor_findings_done(struct doctor_findings *f) {
    for (unsigned i = 0; i < f->nprofiles; i++)
        profile_state_done(&f->profiles[i]);
}
