/* See terms.h.
 *
 * SECURITY: a sandbox that is there keeps what it was made with, so a URL that asks for something
 * else is refused: nobody should take for granted a network that is not there, or that there is
 * none. */

#include "api/mcp/terms.h"

#include "api/jobs/network_field.h"
#include "api/mcp/made_with.h"
#include "api/mcp/place.h"
#include "base/log.h"
#include "base/num.h"
#include "engine/live/live.h"
#include "http/http.h"

#include <stdio.h>
#include <string.h>

/* The limits of a sandbox, from the list LIMITS. */
/* clang-format off */
#define NAMED(name_, flag, unit)  .name = name_
#define HELP(takes, help_)        .help = help_
#define TERM(member, type, scope, named, helped, ...) TERM_##scope({named, helped})
#define TERM_CALL(...)
#define TERM_CELL(...)
#define TERM_SANDBOX(...) __VA_ARGS__,
#define TERM_KERNEL(...)  __VA_ARGS__,
/* clang-format on */
static const struct field fields[] = {
    {.name = "tools", .fallback = "\"core\"", .help = "core, files, ipybox or all, with commas"},
    {.name = "sandbox", .help = "the one that is meant where a call names none"},
    {.name = "profile", .help = "of sandboxes that are made"},
    {.name = "network", .help = "what they may reach: none, open, or rules with commas"},
    LIMITS(TERM) /* memory_mb, … */
};
const struct schema terms_query = {SCHEMA("", fields)};

/* ---- read ---- */

static const struct {
    const char *word;
    unsigned sets;
} set_words[] = {{"core", MCP_CORE},
                 {"files", MCP_FILES},
                 {"ipybox", MCP_IPYBOX},
                 {"all", MCP_CORE | MCP_FILES | MCP_FORKS | MCP_IPYBOX}};

bool terms_sets(const char *text, unsigned *ret) {
    *ret = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ","), i = 0, n = sizeof set_words / sizeof *set_words;
        while (i < n &&
               (strlen(set_words[i].word) != len || memcmp(set_words[i].word, at, len) != 0))
            i++;
        if (i == n)
            return false;
        *ret |= set_words[i].sets;
        at += len + (at[len] == ',');
    }
    return *ret != 0;
}

static int copy_word(const char *from, char *to, size_t cap, const char *name, struct problem *p) {
    size_t len = strlen(from);
    if (len >= cap)
        return problem_set(p, "bad_value", "%s in the URL has more than %zu bytes", name, cap - 1);
    memcpy(to, from, len + 1);
    return 0;
}

static int read_limit(const char *text, size_t i, struct limits *to, struct problem *p) {
    const struct limit_info *info = &limits_info[i];
    const struct num_rule rule = {info->name, info->min, info->max};
    uint64_t v;
    struct err e;
    int r =
        info->type == LIMIT_CORES ? num_milli(text, &rule, &v, &e) : num_u64(text, &rule, &v, &e);
    if (r < 0) {
        *p = problem_of(&e);
        return -1;
    }
    limits_set(to, i, info->type == LIMIT_CORES ? v / 10 : v);
    return 0;
}

static int read_limits(const struct call *c, struct limits *to, struct problem *p) {
    for (size_t i = 0; i < LIMITS_; i++) {
        if (!(limits_info[i].scope & LIMIT_OF_WHOLE))
            continue;
        const char *text = call_query(c, limits_info[i].name);
        if (text && read_limit(text, i, to, p) < 0)
            return -1;
    }
    return 0;
}

static int check_sandbox_name(const char *name, struct problem *p) {
    char quoted[80];
    const char *wrong = place_name_wrong(name);
    if (!wrong)
        return 0;
    return problem_set(p, "bad_value", "sandbox in the URL is %s; %s",
                       log_quote(name, quoted, sizeof quoted), wrong);
}

int terms_read(const struct call *c, struct mcp_who *w, struct problem *p) {
    const char *tools = call_query(c, "tools"), *sandbox = call_query(c, "sandbox");
    const char *profile = call_query(c, "profile"), *network = call_query(c, "network");
    char quoted[80];
    if (!terms_sets(tools ? tools : "core", &w->asker.sets))
        return problem_set(p, "bad_value",
                           "tools in the URL is %s; it may be core, files, ipybox or all, with "
                           "commas between them",
                           log_quote(tools, quoted, sizeof quoted));
    if (sandbox && (check_sandbox_name(sandbox, p) < 0 ||
                    copy_word(sandbox, w->sandbox, sizeof w->sandbox, "sandbox", p) < 0))
        return -1;
    if (profile && copy_word(profile, w->profile, sizeof w->profile, "profile", p) < 0)
        return -1;
    if (network && copy_word(network, w->network, sizeof w->network, "network", p) < 0)
        return -1;
    return read_limits(c, &w->limits, p) < 0 ? -1 : made_with_read(c, &w->with, p);
}

/* ---- used ---- */

static const char *network_text(const struct mcp_who *w) {
    return *w->network ? w->network : w->caller.api->config->mcp_network;
}

bool terms_has_network(const struct mcp_who *w) {
    const char *text = network_text(w), *key = network_of_key(&w->caller);
    return *text && strcmp(text, "none") != 0 && !(key && strcmp(key, "none") == 0);
}

/* NULL in *ret is none. A key that may have less than the settings say gets nothing, unless its URL
 * asks for what it may have. */
static int network_meant(const struct mcp_who *w, struct network_terms **ret, struct problem *p) {
    const char *text = network_text(w);
    *ret = NULL;
    if (!*text)
        return 0;
    struct network_terms *t = network_of_text(&w->caller, text, p);
    if (!t)
        return *w->network || strcmp(p->code, "network_not_allowed") != 0 ? -1 : 0;
    if (t->is_none)
        network_terms_free(t);
    else
        *ret = t;
    return 0;
}

int terms_fill(const struct mcp_who *w, struct live_request *q, struct problem *p) {
    const struct config *g = w->caller.api->config;
    q->profile = xstrdup(*w->profile ? w->profile : g->mcp_profile);
    q->limits = w->limits;
    q->ttl_s = g->live_ttl_max_s;
    q->idle_s = g->mcp_idle_s;
    if (made_with_fill(w->caller.api, w->with, q, p) < 0)
        return -1;
    return network_meant(w, &q->network, p);
}

static int differs(struct problem *p, const char *name, const char *what, const char *is) {
    char quoted[200];
    problem_set(p, "bad_value",
                "the URL asks for another %s than sandbox %s has, which was made with %s", what,
                name, log_quote(is, quoted, sizeof quoted));
    p->remediation = "delete it (tool sandbox, action delete), or name another sandbox";
    return -1;
}

static int check_limits(const struct mcp_who *w, const struct live *l, const char *name,
                        struct problem *p) {
    for (size_t i = 0; i < LIMITS_; i++) {
        uint64_t asked = limits_value(&w->limits, i), has = limits_value(live_limits(l), i);
        AUTO_BUF text = BUF_INIT;
        limits_add_text(&text, i, has);
        if (asked && asked != has)
            return differs(p, name, limits_info[i].name, text.data);
    }
    return 0;
}

static int check_network(const struct mcp_who *w, const struct live *l, const char *name,
                         struct problem *p) {
    struct network_terms *t = NULL;
    if (!*w->network)
        return 0;
    t = network_of_text(&w->caller, w->network, p);
    if (!t)
        return -1;
    int r = strcmp(t->json.data, live_network(l)) == 0
                ? 0
                : differs(p, name, "network", live_network(l));
    network_terms_free(t);
    return r;
}

int terms_check(const struct mcp_who *w, const struct live *l, const char *name,
                struct problem *p) {
    bool any = !*w->profile || strcmp(w->profile, "auto") == 0;
    if (!any && strcmp(w->profile, live_profile(l)) != 0)
        return differs(p, name, "profile", live_profile(l));
    return check_limits(w, l, name, p) < 0 ? -1 : check_network(w, l, name, p);
}
