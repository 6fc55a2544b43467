/* See openapi_refusals.h. */

#include "http/openapi_refusals.h"

#include "base/buf.h"
#include "http/openapi_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct refusal_set *s, const struct api_code *codes, size_t n,
                    const struct schema *body) {
    if (s->n != n || s->body != body || s->codes[0].status != codes[0].status)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->codes[i].code, codes[i].code) != 0)
            return false;
    return true;
}

/* "Error404", and "Error404_2" for the next set of codes with that status. */
static struct refusal_set *set_of(struct refusals *r, const struct api_code *codes, size_t n,
                                  const struct schema *body) {
    unsigned nth = 1;
    for (size_t i = 0; i < r->n; i++) {
        struct refusal_set *s = &r->all[i];
        if (is_same(s, codes, n, body))
            return s;
        nth += s->body == body && s->codes[0].status == codes[0].status;
    }
    r->all = xrealloc(r->all, (r->n + 1) * sizeof *r->all);
    struct refusal_set *s = &r->all[r->n++];
    *s = (struct refusal_set){.body = body, .codes = codes, .n = n};
    char which[16] = "";
    if (nth > 1)
        snprintf(which, sizeof which, "_%u", nth);
    snprintf(s->name, sizeof s->name, "%.40s%d%s", body->name, codes[0].status, which);
    return s;
}

void refusals_write(struct jw *j, struct refusals *r, const struct api_doc *d) {
    size_t n;
    for (size_t i = 0; i < d->nrefusals; i += n) {
        const struct api_code *at = &d->refusals[i];
        n = 1;
        while (i + n < d->nrefusals && at[n].status == at->status)
            n++;
        char status[8];
        AUTO_BUF path = BUF_INIT;
        snprintf(status, sizeof status, "%d", at->status);
        buf_addf(&path, "#/components/responses/%s", set_of(r, at, n, d->refusal)->name);
        jw_key(j, status);
        jw_object(j);
        jw_key_str(j, "$ref", path.data);
        jw_object_end(j);
    }
}

static void write_description(struct jw *j, const struct refusal_set *s) {
    AUTO_BUF text = BUF_INIT;
    for (size_t i = 0; i < s->n; i++)
        buf_addf(&text, "%s`%s`", i ? ", " : "", s->codes[i].code);
    jw_key_str(j, "description", text.data);
}

/* {"type":"object","properties":{"error":{"type":"object","properties":{"code":{…}}}}} */
static void write_codes(struct jw *j, const struct refusal_set *s) {
    static const char *const steps[] = {"error", "code"};
    jw_object(j);
    for (size_t i = 0; i < 2; i++) {
        jw_key_str(j, "type", "object");
        jw_key(j, "properties");
        jw_object(j);
        jw_key(j, steps[i]);
        jw_object(j);
    }
    jw_key_str(j, "type", "string");
    jw_key(j, "enum");
    jw_array(j);
    for (size_t i = 0; i < s->n; i++)
        jw_str(j, s->codes[i].code);
    jw_array_end(j);
    for (size_t i = 0; i < 5; i++)
        jw_object_end(j);
}

/* Not where `error` is an object of somebody else's, of which nothing is said. */
static bool has_codes(const struct schema *s) {
    for (unsigned i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        if (strcmp(f->name, "error") == 0 && f->type == FIELD_OBJECT && !f->of)
            return false;
    }
    return true;
}

static void write_set(struct jw *j, const struct refusal_set *s) {
    jw_key(j, s->name);
    jw_object(j);
    write_description(j, s);
    jw_key(j, "content");
    jw_object(j);
    jw_key(j, "application/json");
    jw_object(j);
    jw_key(j, "schema");
    jw_object(j);
    jw_key(j, "allOf");
    jw_array(j);
    jw_object(j);
    schema_write_ref(j, s->body);
    jw_object_end(j);
    if (has_codes(s->body))
        write_codes(j, s);
    jw_array_end(j);
    for (size_t i = 0; i < 4; i++)
        jw_object_end(j);
}

void refusals_write_all(struct jw *j, const struct refusals *r) {
    jw_key(j, "responses");
    jw_object(j);
    for (size_t i = 0; i < r->n; i++)
        write_set(j, &r->all[i]);
    jw_object_end(j);
}

void refusals_done(struct refusals *r) {
    free(r->all);
    *r = (struct refusals){0};
}
