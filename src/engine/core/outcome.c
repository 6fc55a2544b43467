/* See outcome.h. */

#include "engine/core/outcome.h"

#include "base/clock.h"
#include "base/json.h"
#include "engine/core/files.h"
#include "engine/core/sandbox.h"
#include "engine/network/terms.h"

#include <stdlib.h>
#include <sys/wait.h>

#define MAX_FILES 1000
#define MAX_DEPTH 32

void outcome_init(struct outcome *o) {
    o->exit_code = o->signal = -1;
    o->born_ns = now_ns();
}

void outcome_done(struct outcome *o) {
    changes_done(&o->files);
    network_used_done(&o->network);
    free(o->counts);
    o->counts = NULL;
}

void outcome_exited(struct outcome *o, int status) {
    if (WIFSIGNALED(status)) {
        o->signal = WTERMSIG(status);
        o->exit_code = 128 + o->signal;
    } else {
        o->exit_code = WEXITSTATUS(status);
    }
}

void outcome_met(struct outcome *o, enum limit_kind kind) {
    if (o->limit == LIMIT_NONE)
        o->limit = kind;
}

void outcome_met_in(struct outcome *o, const struct cgroup_usage *u, const struct sandbox *s) {
    if (o->limit != LIMIT_NONE)
        return;
    if (u->out_of_memory)
        o->limit = LIMIT_MEMORY;
    else if (u->out_of_pids)
        o->limit = LIMIT_PIDS;
    else if (sandbox_is_full(s))
        o->limit = LIMIT_DISK;
}

bool outcome_ask_files(struct sandbox *s, uint64_t since_ns, struct file_ask *who) {
    const struct file_question q = {
        .op = FILE_CHANGES, .most = MAX_FILES, .depth = MAX_DEPTH, .since_ns = since_ns};
    return files_ask(s, &q, who);
}

void outcome_take_files(struct outcome *o, struct file_answer *a) {
    o->files = a->changes;
    a->changes = (struct changes){0};
    o->files_cut = a->cut;
}

void outcome_take_network(struct outcome *o, struct sandbox *s, struct wire_in *in,
                          const struct network_used *before) {
    const struct network_terms *t = s->network.terms;
    o->has_network = true;
    network_read_used(in, &o->network);
    bool is_over = t && t->bytes && network_used_bytes(&o->network) >= t->bytes;
    network_used_since(&o->network, before);
    if (is_over && o->network.n)
        outcome_met(o, LIMIT_NETWORK);
}

const char *outcome_word(enum outcome_status status) {
    static const char *const words[] = {
        [OUTCOME_OK] = "ok",           [OUTCOME_ERROR] = "error",
        [OUTCOME_TIMEOUT] = "timeout", [OUTCOME_MEMORY] = "memory_exceeded",
        [OUTCOME_KILLED] = "killed",   [OUTCOME_INTERRUPTED] = "interrupted"};
    return words[status];
}

static uint64_t until_ns(const struct outcome *o) {
    return o->ended_ns ? o->ended_ns : now_ns();
}

static double ms_between(uint64_t from_ns, uint64_t to_ns) {
    return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

uint64_t outcome_duration_ms(const struct outcome *o) {
    return o->started_ns && until_ns(o) > o->started_ns ? ns_to_ms(until_ns(o) - o->started_ns) : 0;
}

struct limits_met outcome_limits_met(const struct outcome *o, const struct limits *of) {
    return (struct limits_met){.limit = o->limit,
                               .of = *of,
                               .cut = {o->cut[0], o->cut[1]},
                               .crowded = o->crowded,
                               .files_cut = o->files_cut};
}

struct receipt outcome_receipt(const struct outcome *o, const char *profile) {
    return (struct receipt){.status = outcome_word(o->status),
                            .profile = profile,
                            .wall_ms = ms_between(o->started_ns, until_ns(o)),
                            .queue_ms = ms_between(o->born_ns, o->given_ns),
                            .cpu_ms = (double)o->cpu_us / 1e3,
                            .memory_peak = o->memory_peak,
                            .denied = &o->denied};
}

/* ---- in JSON ---- */

#define X(kind, word) word,
static const char *const limit_words[] = {LIMIT_KINDS(X) NULL};
#undef X

static const struct field file_fields[] = {
    HAS("path", FIELD_STRING),
    HAS("kind", FIELD_STRING, WORDS("file")),
    HAS_OR_NULL("file_id", FIELD_STRING, .help = "in the file store; null: it is not there"),
    HAS("size_bytes", FIELD_INT),
};
static const struct schema file_schema = {SCHEMA("ResultFile", file_fields),
                                          .help = "what was made or changed"};

static const struct field usage_fields[] = {
    HAS("wall_ms", FIELD_REAL),
    HAS("queue_ms", FIELD_REAL),
    HAS("cpu_ms", FIELD_REAL),
    HAS("memory_peak_bytes", FIELD_INT),
    HAS("output_bytes", FIELD_INT),
    MAY_HAVE("network", LIST_OF(network_row_schema), .help = "where there is one"),
};
static const struct schema usage_schema = {SCHEMA("Usage", usage_fields)};

static const struct field exception_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("value", FIELD_STRING),
    HAS("traceback", FIELD_LIST, .help = "line by line"),
};
const struct schema exception_schema = {SCHEMA("Exception", exception_fields)};

static const struct field outcome_fields[] = {
    HAS_OR_NULL("exit_code", FIELD_INT, .help = "null after a timeout"),
    HAS("timed_out", FIELD_BOOL),
    HAS("duration_ms", FIELD_INT),
    HAS("files", LIST_OF(file_schema)),
    HAS("id", FIELD_STRING),
    HAS("status", FIELD_STRING,
        WORDS("ok", "error", "timeout", "memory_exceeded", "killed", "interrupted")),
    HAS_OR_NULL("signal", FIELD_INT, .help = "the one that killed it"),
    HAS("stdout_truncated", FIELD_BOOL),
    HAS("stderr_truncated", FIELD_BOOL),
    HAS("files_truncated", FIELD_BOOL),
    /* The first word is for none. */
    HAS_OR_NULL("limit_hit", FIELD_STRING, .words = limit_words + 1),
    HAS("denied", LIST_OF(denial_schema), .help = "what the sandbox refused"),
    HAS("usage", OBJECT(usage_schema)),
    HAS("profile", FIELD_STRING),
    HAS("warm", FIELD_BOOL, .help = "whether the sandbox was ready before"),
    WARNINGS_FIELD,
};
const struct schema outcome_schema = {SCHEMA("Outcome", outcome_fields)};

void outcome_put_code(struct jw *j, const char *name, int code) {
    if (code >= 0)
        jw_key_int(j, name, code);
    else
        jw_key_null(j, name);
}

static void put_files(struct jw *j, const struct outcome *o, const struct file_ids *ids) {
    jw_key(j, "files");
    jw_array(j);
    for (unsigned i = 0; i < o->files.n; i++) {
        const struct change *f = &o->files.items[i];
        if (o->counts && !o->counts[i])
            continue;
        jw_object(j);
        jw_key_str(j, "path", f->path);
        jw_key_str(j, "kind", "file");
        jw_key_str(j, "file_id", ids->of ? ids->of(ids->arg, f->path) : NULL);
        jw_key_uint(j, "size_bytes", f->size);
        jw_object_end(j);
    }
    jw_array_end(j);
}

/* The fields of the Code Interpreter API come first. */
void outcome_put_beginning(struct jw *j, const struct outcome *o, const char *id,
                           const struct file_ids *ids) {
    bool timed_out = o->status == OUTCOME_TIMEOUT;
    outcome_put_code(j, "exit_code", timed_out ? -1 : o->exit_code);
    jw_key_bool(j, "timed_out", timed_out);
    jw_key_uint(j, "duration_ms", outcome_duration_ms(o));
    put_files(j, o, ids);
    jw_key_str(j, "id", id);
    jw_key_str(j, "status", outcome_word(o->status));
    outcome_put_code(j, "signal", o->signal);
    jw_key_bool(j, "stdout_truncated", o->cut[0]);
    jw_key_bool(j, "stderr_truncated", o->cut[1]);
    jw_key_bool(j, "files_truncated", o->files_cut);
}

void outcome_put_end(struct jw *j, const struct outcome *o, const char *profile, bool warm) {
    const struct receipt t = outcome_receipt(o, profile);
    jw_key_str(j, "limit_hit", limit_words[o->limit]);
    denials_put(&o->denied, j);
    jw_key(j, "usage");
    jw_object(j);
    jw_key_real(j, "wall_ms", t.wall_ms);
    jw_key_real(j, "queue_ms", t.queue_ms);
    jw_key_real(j, "cpu_ms", t.cpu_ms);
    jw_key_uint(j, "memory_peak_bytes", o->memory_peak);
    jw_key_uint(j, "output_bytes", o->output_bytes);
    if (o->has_network) {
        jw_key(j, "network");
        network_used_put(&o->network, j);
    }
    jw_object_end(j);
    jw_key_str(j, "profile", profile);
    jw_key_bool(j, "warm", warm);
}
