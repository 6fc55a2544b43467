/* See place.h. A sandbox is found by its alias (jobs/aliases.h), which is kept with it over a
 * restart of the server: "mcp/NAME", and the key's own default as "mcp/default/KEY".
 *
 * Which sandbox a name meant last is remembered here, so that the next one can say why it is not
 * that one any more. */

#include "api/mcp/place.h"

#include "api/core/api_state.h"
#include "api/jobs/aliases.h"
#include "api/mcp/terms.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN 2048u /* names that are remembered: the oldest go */

/* ---- names ---- */

const char *place_name_wrong(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t len = strlen(name);
    return len > 0 && len <= MCP_NAME_MAX && strspn(name, letters) == len
               ? NULL
               : "a name has 1 to 64 letters, digits and -";
}

const char *place_wrong(const json_t *name) {
    return place_name_wrong(json_string_value(name));
}

const char *place_name(const struct mcp_call *c) {
    const struct mcp_who *w = mcp_who(c);
    const char *session = *w->asker.session ? w->asker.session : PLACE_DEFAULT;
    const char *usual = *w->sandbox ? w->sandbox : session;
    return mcp_tool(c) ? field_str(mcp_args(c), "sandbox", usual) : usual;
}

void place_kept_name(const struct mcp_who *w, const char *name, char *to, size_t cap) {
    bool is_own = strcmp(name, PLACE_DEFAULT) == 0 && w->caller.key[0];
    snprintf(to, cap, "%s%s%s", name, is_own ? "/" : "", is_own ? w->caller.key : "");
}

struct live *place_find(const struct mcp_call *c, const char *name) {
    const struct mcp_who *w = mcp_who(c);
    char kept[ALIAS_MAX];
    place_kept_name(w, name, kept, sizeof kept);
    return alias_find(w->caller.api->o.engine, w->caller.tenant, PLACE_KEPT_AS, kept);
}

const char *place_name_of(const struct live *l) {
    const char *kept = alias_name(l, PLACE_KEPT_AS);
    return kept && strchr(kept, '/') ? PLACE_DEFAULT : kept ? kept : "";
}

struct live *place_next(const struct mcp_call *c, const struct live *l) {
    const struct caller *who = &mcp_who(c)->caller;
    struct live *next = live_next(who->api->o.engine, who->tenant, l);
    for (; next; next = live_next(who->api->o.engine, who->tenant, next)) {
        const char *kept = alias_name(next, PLACE_KEPT_AS), *key = kept ? strchr(kept, '/') : NULL;
        if (kept && (!key || strcmp(key + 1, who->key) == 0))
            break;
    }
    return next;
}

/* ---- which one a name meant ---- */

struct place_known {
    struct place_known *next; /* the latest first */
    char *tenant, *name;      /* owned */
    char id[ID_MAX];
};

static void known_free(struct place_known *k) {
    free(k->tenant);
    free(k->name);
    free(k);
}

static struct place_known **known_find(struct api *a, const char *tenant, const char *name,
                                       unsigned *ret_n) {
    struct place_known **at = &a->places;
    for (*ret_n = 0; *at; at = &(*at)->next, ++*ret_n) {
        if (strcmp((*at)->name, name) == 0 && strcmp((*at)->tenant, tenant) == 0)
            break;
    }
    return at;
}

static void known_forget_last(struct api *a) {
    struct place_known **at = &a->places;
    while (*at && (*at)->next)
        at = &(*at)->next;
    if (*at)
        known_free(LIST_POP(at, next));
}

/* Moves it to the front, where it is found soon. */
static void known_note(struct api *a, const char *tenant, const char *name, const char *id) {
    unsigned n;
    struct place_known **at = known_find(a, tenant, name, &n), *k = LIST_POP(at, next);
    if (!k) {
        k = xcalloc(1, sizeof *k);
        k->tenant = xstrdup(tenant);
        k->name = xstrdup(name);
        if (n >= KNOWN)
            known_forget_last(a);
    }
    snprintf(k->id, sizeof k->id, "%s", id);
    LIST_PUSH(&a->places, k, next);
}

/* Why there is not the one that the name meant before: "" when there was none. */
static void known_reason(const struct mcp_who *w, const char *kept, char *to, size_t cap) {
    static const char gone[] = "the sandbox is gone: ";
    struct api *a = w->caller.api;
    unsigned n;
    struct err e;
    const struct place_known *k = *known_find(a, w->caller.tenant, kept, &n);
    *to = '\0';
    if (k && !live_find(a->o.engine, w->caller.tenant, k->id, &e) &&
        strncmp(e.text, gone, sizeof gone - 1) == 0)
        snprintf(to, cap, "%.190s", e.text + sizeof gone - 1);
}

/* ---- used ---- */

struct place_wait {
    struct alias_seeker seeker;
    struct mcp_call *call;
    place_fn *then;
    char kept[ALIAS_MAX];
};

static void place_wait_free(void *state) {
    struct place_wait *x = state;
    alias_leave(&x->seeker);
    free(x);
}

static void place_on_live(struct alias_seeker *s, struct live *l, const struct problem *why) {
    const struct place_wait *x = (const struct place_wait *)s;
    struct mcp_call *c = x->call;
    struct mcp_who *w = mcp_who(c);
    struct problem p;
    place_fn *then = x->then;
    if (!l) {
        place_problem(c, why);
        return;
    }
    if (terms_check(w, l, place_name(c), &p) < 0) {
        place_problem(c, &p);
        return;
    }
    known_note(w->caller.api, w->caller.tenant, x->kept, live_id(l));
    mcp_keep(c, NULL, NULL);
    free(s);
    then(c, l);
}

static int place_fill(void *arg, struct live_request *q, struct problem *p) {
    const struct place_wait *x = arg;
    struct mcp_who *w = mcp_who(x->call);
    AUTO_BUF metadata = BUF_INIT;
    struct jw j = JW_INIT(&metadata);
    known_reason(w, x->kept, w->reason, sizeof w->reason);
    w->is_new = true;
    jw_object(&j);
    jw_key_str(&j, "mcp", place_name(x->call));
    jw_object_end(&j);
    q->metadata = buf_take(&metadata);
    return terms_fill(w, q, p);
}

void place_use(struct mcp_call *c, place_fn *then) {
    struct mcp_who *w = mcp_who(c);
    struct place_wait *x = xcalloc(1, sizeof *x);
    *x = (struct place_wait){.seeker = {.then = place_on_live}, .call = c, .then = then};
    place_kept_name(w, place_name(c), x->kept, sizeof x->kept);
    mcp_keep(c, x, place_wait_free);
    mcp_on_cancel(c, mcp_answer);
    alias_seek(&x->seeker, &(struct alias_wanted){.who = &w->caller,
                                                  .dialect = PLACE_KEPT_AS,
                                                  .name = x->kept,
                                                  .fill = place_fill,
                                                  .arg = x});
}

void place_news(const struct mcp_call *c, struct buf *to) {
    const struct mcp_who *w = mcp_who(c);
    if (!w->is_new)
        return;
    if (to->len)
        buf_addc(to, '\n');
    if (*w->reason)
        buf_addf(to, "[new sandbox: the one before is gone (%s): its variables and files, too]",
                 w->reason);
    else
        buf_adds(to, "[new sandbox: no variables yet]");
}

void place_session_over(const struct mcp_asker *who) {
    const struct mcp_who *w = (const struct mcp_who *)who;
    struct live *l =
        alias_find(w->caller.api->o.engine, w->caller.tenant, PLACE_KEPT_AS, who->session);
    if (l)
        live_end(l, "its session was ended", NULL, NULL);
}

/* ---- errors ---- */

void place_problem(struct mcp_call *c, const struct problem *p) {
    if (p->status == 500)
        log_error("tool failed id=%s error=%s", mcp_who(c)->caller.request,
                  log_text(problem_message(p)));
    if (p->remediation)
        mcp_answer_errorf(c, "%s (%s)", problem_message(p), p->remediation);
    else
        mcp_answer_errorf(c, "%s", problem_message(p));
}

void place_fail(struct mcp_call *c, const struct err *e) {
    const struct problem p = problem_of(e);
    place_problem(c, &p);
}
