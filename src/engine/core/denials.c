/* See denials.h. */

#include "engine/core/denials.h"

#include <stdio.h>
#include <string.h>

static bool is_same(const struct denial *a, const struct denial *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->detail, b->detail) == 0 &&
           strcmp(a->rule, b->rule) == 0;
}

void denials_add(struct denials *d, const char *op, const char *detail, const char *rule) {
    if (d->n == MAX_DENIED)
        return;
    struct denial *one = &d->all[d->n];
    snprintf(one->op, sizeof one->op, "%s", op);
    snprintf(one->detail, sizeof one->detail, "%s", detail);
    snprintf(one->rule, sizeof one->rule, "%s", rule);
    unsigned i = 0;
    while (i < d->n && !is_same(&d->all[i], one))
        i++;
    d->n += i == d->n;
}

void denials_add_network(struct denials *d, uint64_t attempts) {
    char detail[120];
    if (attempts == 0)
        return;
    snprintf(detail, sizeof detail,
             "%llu attempt%s to reach an address outside the sandbox; it has no network",
             (unsigned long long)attempts, attempts == 1 ? "" : "s");
    denials_add(d, "connect to the network", detail, "network:none");
}

static const struct field denial_fields[] = {
    HAS("op", FIELD_STRING, .help = "what was tried"),
    HAS("detail", FIELD_STRING),
    HAS("rule", FIELD_STRING, .help = "what refused it"),
};
const struct schema denial_schema = {SCHEMA("Denial", denial_fields)};

void denials_put(const struct denials *d, struct jw *j) {
    jw_key(j, "denied");
    jw_array(j);
    for (unsigned i = 0; i < d->n; i++) {
        jw_object(j);
        jw_key_str(j, "op", d->all[i].op);
        jw_key_str(j, "detail", d->all[i].detail);
        jw_key_str(j, "rule", d->all[i].rule);
        jw_object_end(j);
    }
    jw_array_end(j);
}
