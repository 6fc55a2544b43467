/* See doctor_print.h. */

#include "cli/doctor_print.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "sandbox/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const state_words[] = {
    [PROBE_OK] = "ok", [PROBE_WEAK] = "weak", [PROBE_MISSING] = "missing"};

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

static void write_layers(struct jw *j, const struct doctor_findings *f) {
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

static void write_machine(struct jw *j, const struct doctor_machine *m) {
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

static void write_profiles(struct jw *j, const struct doctor_findings *f) {
    jw_key(j, "profiles");
    jw_array(j);
    for (unsigned i = 0; i < f->nprofiles; i++) {
        const struct doctor_profile *s = &f->profiles[i];
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

void doctor_print_json(const struct doctor_findings *f) {
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

static void print_machine(const struct doctor_machine *m) {
    printf("cloche %s on Linux %s", CLOCHE_VERSION, m->kernel);
    if (*diagnose_container())
        printf(" (%s)", diagnose_container());
    printf(", as %s (uid %u), %u core%s, %llu MiB of memory, transparent huge pages: %s\n\n",
           m->user, (unsigned)geteuid(), m->cores, m->cores == 1 ? "" : "s",
           (unsigned long long)m->memory_mb, m->huge_pages);
}

static void print_layers(const struct doctor_findings *f) {
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

static void print_missing_modules(const struct doctor_profile *s) {
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

static void print_profiles(const struct doctor_findings *f) {
    putchar('\n');
    for (unsigned i = 0; i < f->nprofiles; i++) {
        const struct doctor_profile *s = &f->profiles[i];
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

static void print_verdict(const struct doctor_findings *f) {
    if (!f->unmet) {
        if (doctor_has_broken(f))
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

void doctor_print_text(const struct doctor_findings *f) {
    print_machine(&f->machine);
    print_layers(f);
    print_profiles(f);
    print_verdict(f);
}
