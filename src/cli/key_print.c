/* See key_print.h. */

#include "cli/key_print.h"

#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void write_limit(struct jw *j, const char *name, uint32_t v) {
    jw_key(j, name);
    if (v)
        jw_uint(j, v);
    else
        jw_null(j);
}

/* The members of a key but its hash, which is nobody's business. */
static void write_key(struct jw *j, const struct key *k) {
    jw_key_str(j, "id", k->id);
    jw_key_str(j, "name", k->name);
    jw_key_str(j, "tenant", k->tenant);
    jw_key_real(j, "created", k->created);
    jw_key(j, "limits");
    jw_object(j);
    if (k->limits.requests_per_second != 0)
        jw_key_real(j, "requests_per_second", k->limits.requests_per_second);
    else
        jw_key_null(j, "requests_per_second");
    write_limit(j, "concurrent", k->limits.concurrent);
    write_limit(j, "cpu_seconds_per_minute", k->limits.cpu_seconds_per_minute);
    write_limit(j, "sandboxes", k->limits.sandboxes);
    jw_object_end(j);
    jw_key_str(j, "network", k->network);
    jw_key(j, "rights");
    jw_array(j);
    for (unsigned i = 0; key_rights[i]; i++) {
        if (k->rights & 1u << i)
            jw_str(j, key_rights[i]);
    }
    jw_array_end(j);
}

static void add_limits(struct buf *b, const struct key *k) {
    const struct key_limits *l = &k->limits;
    size_t before = b->len;
    if (l->requests_per_second != 0)
        buf_addf(b, "%.10g requests/s", l->requests_per_second);
    if (l->concurrent)
        buf_addf(b, "%s%u at once", b->len > before ? ", " : "", l->concurrent);
    if (l->cpu_seconds_per_minute)
        buf_addf(b, "%s%u CPU s/min", b->len > before ? ", " : "", l->cpu_seconds_per_minute);
    if (l->sandboxes)
        buf_addf(b, "%s%u sandboxes", b->len > before ? ", " : "", l->sandboxes);
    if (k->network)
        buf_addf(b, "%snetwork %s", b->len > before ? ", " : "", k->network);
    if (b->len == before)
        buf_adds(b, "none");
    for (unsigned i = 0; key_rights[i]; i++) {
        if (k->rights & 1u << i)
            buf_addf(b, ", may: %s", key_rights[i]);
    }
}

static int widest(int a, const char *text) {
    int len = (int)strlen(text);
    return len > a ? len : a;
}

void key_print_table(const struct keys *k) {
    int name = (int)strlen("name"), tenant = (int)strlen("tenant");
    for (unsigned i = 0; i < k->n; i++) {
        name = widest(name, k->items[i].name);
        tenant = widest(tenant, k->items[i].tenant);
    }
    printf("%-20s  %-*s  %-*s  %-20s  %s\n", "id", name, "name", tenant, "tenant", "created",
           "limits");
    for (unsigned i = 0; i < k->n; i++) {
        const struct key *key = &k->items[i];
        char when[32] = "?";
        struct tm tm;
        if (text_date((double)key->created, &tm))
            strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
        AUTO_BUF limits = BUF_INIT;
        add_limits(&limits, key);
        printf("%-20s  %-*s  %-*s  %-20s  %s\n", key->id, name, key->name, tenant, key->tenant,
               when, limits.data);
    }
}

void key_print_json(const struct keys *k) {
    AUTO_BUF b = BUF_INIT;
    struct jw j = JW_INIT(&b);
    jw_object(&j);
    jw_key(&j, "keys");
    jw_array(&j);
    for (unsigned i = 0; i < k->n; i++) {
        jw_object(&j);
        write_key(&j, &k->items[i]);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_object_end(&j);
    puts(b.data);
}

void key_add_json(struct buf *b, const struct key *k, const char *secret) {
    struct jw j = JW_INIT(b);
    jw_object(&j);
    write_key(&j, k);
    if (secret)
        jw_key_str(&j, "secret", secret);
    jw_object_end(&j);
    buf_addc(b, '\n');
}
