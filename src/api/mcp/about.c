/* See about.h. Clients cut these texts at 2,048 characters, and many models see no more than names
 * and instructions until they look for a tool. */

#include "api/mcp/about.h"

#include "api/core/api_state.h"
#include "api/mcp/terms.h"
#include "engine/core/pool.h"

#include <stdio.h>
#include <string.h>

#define MODULES_MAX 350u /* characters */

static const struct profile_pool *pool_of(const struct mcp_who *w) {
    const struct engine *g = w->caller.api->o.engine;
    const struct profile_pool *best = NULL;
    for (unsigned i = 0; i < g->config.nprofiles; i++) {
        const struct profile_pool *p = &g->pools[i];
        if (p->config->live || p->config->removed)
            continue;
        if (*w->profile && strcmp(w->profile, "auto") != 0) {
            if (strcmp(p->config->name, w->profile) == 0)
                return p;
        } else if (!best || strlen(p->modules) > strlen(best->modules)) {
            best = p;
        }
    }
    return best;
}

/* Those that nobody needs to hear of: Python's own, of those that are preloaded by default. */
static bool is_usual(const char *name, size_t len) {
    static const char usual[] =
        " bisect collections copy csv dataclasses datetime decimal fractions functools heapq "
        "itertools json math operator pathlib random re statistics string textwrap time typing ";
    char word[40];
    if (len == 0 || *name == '_' || memchr(name, '.', len) || len > sizeof word - 3)
        return true;
    snprintf(word, sizeof word, " %.*s ", (int)len, name);
    return strstr(usual, word) != NULL;
}

static void add_modules(const char *words, struct buf *to) {
    size_t from = to->len;
    while (*words && to->len - from < MODULES_MAX) {
        size_t n = strcspn(words, " ");
        if (!is_usual(words, n))
            buf_addf(to, "%s%.*s", to->len == from ? " Installed and ready: " : ", ", (int)n,
                     words);
        words += n + (words[n] == ' ');
    }
    if (to->len > from)
        buf_adds(to, ".");
}

void about_run(const struct mcp_asker *who, struct buf *to) {
    const struct mcp_who *w = (const struct mcp_who *)who;
    const struct config *g = w->caller.api->config;
    const struct profile_pool *p = pool_of(w);
    if (p)
        add_modules(p->modules, to);
    buf_adds(to, terms_has_network(w) ? " It reaches some of the network." : " It has no network.");
    buf_addf(to,
             " A call has %.10g s unless it asks for more (timeout_s, at most %.10g). A sandbox "
             "that is not used for %u minutes ends, with its files.",
             g->live.timeout_ms / 1e3, g->maxima.timeout_ms / 1e3, g->mcp_idle_s / 60);
}

unsigned about_hints(const struct mcp_asker *who) {
    return terms_has_network((const struct mcp_who *)who) ? 0 : MCP_CLOSED;
}

void about_instructions(const struct mcp_asker *who, struct buf *to) {
    const struct mcp_who *w = (const struct mcp_who *)who;
    buf_adds(to,
             "cloche runs code in sandboxes that nothing gets out of. run_python is a notebook "
             "cell: variables, imports and files stay from call to call, the value of the last "
             "expression and figures come back. run_shell runs bash in the same sandbox. "
             "read_file, write_file and list_files see its files, which are in /workspace; "
             "relative paths begin there. The tool sandbox shows variables, interrupts, resets "
             "and deletes.\n"
             "Print what you need and no more: text beyond 30,000 characters is cut in the middle. "
             "Save large results to files. Files that a call made are linked as "
             "cloche://sandbox/NAME/PATH.\n"
             "The argument sandbox names another machine, with files and variables of its own; "
             "leave it out to go on with the usual one. One call at a time runs in a sandbox.\n");
    about_run(&w->asker, to);
}
