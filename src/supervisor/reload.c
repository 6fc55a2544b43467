/* See reload.h. */

#include "supervisor/reload.h"

#include "base/buf.h"
#include "config/config.h"

#include <string.h>
#include <sys/stat.h>

/* A directory changes when something is installed into it or removed. */
static uint64_t stamp_of(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0)
        return 1;
    return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec +
           (uint64_t)st.st_ino;
}

/* Made anew with each virtual environment, whose interpreter is a link to one that stays. */
static uint64_t stamp_of_env(const char *python) {
    AUTO_BUF path = BUF_INIT;
    const char *slash = strrchr(python, '/');
    buf_addf(&path, "%.*s/../pyvenv.cfg", slash ? (int)(slash - python) : 0, python);
    return stamp_of(path.data);
}

void reload_stamp(struct config *c) {
    for (unsigned i = 0; i < c->nprofiles; i++) {
        struct config_profile *p = &c->profiles[i];
        p->stamp = stamp_of(p->python) * 31 + stamp_of_env(p->python);
        for (unsigned k = 0; k < p->sites.n; k++)
            p->stamp = p->stamp * 31 + stamp_of(p->sites.items[k]);
    }
}

static unsigned find_profile(const struct config *c, const char *name) {
    unsigned i = 0;
    while (i < c->nprofiles && strcmp(c->profiles[i].name, name) != 0)
        i++;
    return i;
}

static void swap(struct config_profile *a, struct config_profile *b) {
    struct config_profile t = *a;
    *a = *b;
    *b = t;
}

static void swap_texts(char **a, char **b) {
    char *t = *a;
    *a = *b;
    *b = t;
}

/* What may be granted of the network from now on. */
static void merge_network(struct config *c, struct config *next) {
    swap_texts(&c->network, &next->network);
    swap_texts(&c->network_sets, &next->network_sets);
    swap_texts(&c->network_deny, &next->network_deny);
    swap_texts(&c->network_resolvers, &next->network_resolvers);
    swap_texts(&c->build_network, &next->build_network);
}

int reload_merge(struct config *c, struct config *next, struct err *e) {
    unsigned total = config_named(c, c->nprofiles);
    for (unsigned i = 0; i < next->nprofiles; i++)
        total += !next->profiles[i].live && find_profile(c, next->profiles[i].name) == c->nprofiles;
    if (total > CONFIG_MAX_NAMED) /* and no more twins than those */
        return err_user(e, "bad_config",
                        "%u profiles, those counted that were removed since the start; at most %d "
                        "are possible, restart to forget the removed ones",
                        total, CONFIG_MAX_NAMED);
    for (unsigned i = 0; i < c->nprofiles; i++)
        if (find_profile(next, c->profiles[i].name) == next->nprofiles)
            c->profiles[i].removed = 1;
    for (unsigned i = 0; i < next->nprofiles; i++) {
        unsigned at = find_profile(c, next->profiles[i].name);
        c->nprofiles += at == c->nprofiles; /* an empty place, which `next` gets back */
        swap(&c->profiles[at], &next->profiles[i]);
    }
    merge_network(c, next);
    return 0;
}
