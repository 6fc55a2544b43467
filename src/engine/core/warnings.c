/* See warnings.h. */

#include "engine/core/warnings.h"

#include "base/buf.h"
#include "base/json.h"
#include "wire/run.h"

#include <string.h>

static void add_limit(const struct limits_met *m, struct buf *to) {
    const struct limits *l = &m->of;
    switch (m->limit) {
    case LIMIT_TIME:
        buf_addf(to, "stopped: it ran longer than %.10g s (timeout_ms)\n", l->timeout_ms / 1e3);
        break;
    case LIMIT_CPU:
        buf_addf(to, "stopped: it used more than %u s of CPU time (cpu_seconds)\n", l->cpu_seconds);
        break;
    case LIMIT_MEMORY:
        buf_addf(to, "%s needed more than %u MB of memory (memory_mb)\n",
                 m->ended ? "killed: it" : "a process in it was killed: all of it together",
                 l->memory_mb);
        break;
    case LIMIT_PIDS:
        buf_addf(to,
                 "it could not start more: %u processes and threads at once are allowed (pids)\n",
                 l->pids);
        break;
    case LIMIT_DISK:
        buf_addf(to, "its disk became full: %u MB are allowed, and not too many files (disk_mb)\n",
                 l->disk_mb);
        break;
    case LIMIT_NETWORK:
        buf_adds(to, "its connections ended: all the bytes that its network may carry went "
                     "through (network.bytes)\n");
        break;
    case LIMIT_OUTPUT: /* below */
    case LIMIT_NONE:
        break;
    }
}

static void add_cut(const struct limits_met *m, struct buf *to) {
    if (!m->cut[0] && !m->cut[1])
        return;
    buf_addf(to, "%s was cut: ", !m->cut[1] ? "stdout" : !m->cut[0] ? "stderr" : "output");
    if (m->crowded) {
        buf_adds(to, "there is no more room for what this sandbox prints and shows, all that runs "
                     "in it together (output_bytes)\n");
        return;
    }
    buf_adds(to, "there was more than ");
    limits_add_bytes(to, m->of.output_bytes);
    buf_adds(to, " of it (output_bytes)\n");
}

void warnings_add(const struct limits_met *m, struct buf *to) {
    add_limit(m, to);
    add_cut(m, to);
    if (m->lost)
        buf_adds(to, "the server was restarted meanwhile: of what was printed before, some may be "
                     "missing here\n");
    if (m->results_cut)
        buf_adds(to, "not all results and figures came out: there was too much of them\n");
    if (m->files_cut)
        buf_adds(to, RUN_FILES_CUT "\n");
}

void warnings_put(struct jw *j, const struct buf *lines) {
    if (lines->len == 0)
        return;
    jw_key(j, "warnings");
    jw_array(j);
    for (const char *at = lines->data; *at;) {
        size_t len = strcspn(at, "\n");
        jw_strn(j, at, len);
        at += len + (at[len] == '\n');
    }
    jw_array_end(j);
}
