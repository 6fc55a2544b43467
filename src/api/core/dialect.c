/* See dialect.h. */

#include "api/core/dialect.h"

#include "api/core/call.h"

#include <stdlib.h>
#include <string.h>

/* Its place among the words of --dialects, from 1 on; 0: it has none. */
static unsigned rank_of(const char *words, const char *name) {
    for (unsigned rank = 1; *words; rank++) {
        size_t n = strcspn(words, ",");
        if (n == strlen(name) && strncmp(words, name, n) == 0)
            return rank;
        words += n + (words[n] == ',');
    }
    return 0;
}

void dialects_start(struct api *a, const struct dialect *const *list) {
    while (list[a->nspeakers])
        a->nspeakers++;
    a->speakers = xcalloc(a->nspeakers + 1, sizeof *a->speakers);
    for (unsigned i = 0; i < a->nspeakers; i++) {
        struct speaker *s = &a->speakers[i];
        *s = (struct speaker){.dialect = list[i],
                              .rank = rank_of(a->config->http.dialects, list[i]->name)};
        if (s->dialect->start)
            s->state = s->dialect->start(a);
        if (s->rank)
            routes_add(&a->routes, s->dialect->tables, s->dialect);
    }
}

void dialects_adopt(struct api *a) {
    for (unsigned i = 0; i < a->nspeakers; i++) {
        if (a->speakers[i].dialect->adopt)
            a->speakers[i].dialect->adopt(a);
    }
}

void dialects_inherit(struct api *a, struct live *l, struct cell *c, struct cell_job *job) {
    unsigned i = 0;
    while (i < a->nspeakers &&
           !(a->speakers[i].dialect->inherit && a->speakers[i].dialect->inherit(a, l, c, job)))
        i++;
}

void *dialect_state(const struct api *a, const struct dialect *d) {
    unsigned i = 0;
    while (a->speakers[i].dialect != d)
        i++;
    return a->speakers[i].state;
}
