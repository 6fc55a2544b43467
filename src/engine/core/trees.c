/* See trees.h. */

#include "engine/core/trees.h"

#include "base/list.h"
#include "engine/core/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tree_free(struct tree *t) {
    if (!t)
        return;
    for (unsigned k = 0; k < t->env.n; k++)
        free(t->env.items[k]);
    free(t->env.items);
    free(t->tenant);
    free(t->name);
    free(t->profile);
    free(t->python);
    free(t);
}

void trees_add(struct engine *g, struct tree *t) {
    t->engine = g;
    LIST_PUSH(&g->trees.first, t, next);
}

static struct tree *find_id(const struct engine *g, const char *id) {
    struct tree *t = g->trees.first;
    while (t && strcmp(t->id, id) != 0)
        t = t->next;
    return t;
}

struct tree *trees_find(const struct engine *g, const char *tenant, const char *name) {
    struct tree *t = g->trees.first;
    while (t && (t->gone || strcmp(t->tenant, tenant) != 0 || strcmp(t->name, name) != 0))
        t = t->next;
    return t;
}

static void drop_unused(struct tree *t) {
    struct engine_trees *all = &t->engine->trees;
    if (!t->gone || t->users)
        return;
    LIST_REMOVE(&all->first, t, next);
    if (all->on_unused)
        all->on_unused(all->arg, t->id);
    tree_free(t);
}

void trees_remove(struct tree *t) {
    t->gone = true;
    drop_unused(t);
}

struct tree *trees_inherit(struct engine *g, const char *id) {
    struct tree *t = find_id(g, id);
    if (!t) {
        t = xcalloc(1, sizeof *t);
        snprintf(t->id, sizeof t->id, "%s", id);
        t->tenant = xstrdup("");
        t->name = xstrdup("");
        t->gone = true;
        trees_add(g, t);
    }
    return tree_use(t);
}

bool trees_has(const struct engine *g, const char *id) {
    return find_id(g, id) != NULL;
}

struct tree *tree_use(struct tree *t) {
    if (t)
        t->users++;
    return t;
}

void tree_leave(struct tree *t) {
    if (!t)
        return;
    t->users--;
    drop_unused(t);
}

int tree_check(const struct tree *t, const struct profile_pool *p, struct err *e) {
    static const char first[] = "Python ";
    const char *now = p->what;
    size_t n = strlen(t->python);
    if (strncmp(now, first, sizeof first - 1) == 0)
        now += sizeof first - 1;
    if (p->state != PROFILE_READY || (strncmp(now, t->python, n) == 0 && now[n] == '.'))
        return 0;
    return err_user(e, "profile_broken",
                    "profile %s was built for Python %s, and %s has %.20s now; make it again",
                    t->name, t->python, t->profile, p->what);
}
