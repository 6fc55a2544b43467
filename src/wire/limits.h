#pragma once
/* The limits of a program, listed once. Made from this list are the struct, its wire form, its
 * JSON, the schema of requests, the flags of the command line with their help, the journal, and
 * the settings: for each limit a default (memory_mb), a maximum (max_memory_mb) and a default of
 * live sandboxes (live_memory_mb).
 *
 * To add one: a row here, and whatever enforces it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct wire_in;
struct wire_out;

/* X(member, TYPE(min, max), SCOPE, NAMED, HELP, DEFAULT, MOST, LIVE)
 *
 *   TYPE     NUM: a whole number. LONG: the same in 64 bits. MILLI: the same, with a flag that
 *            takes seconds, fractions allowed. CORES: hundredths of a processor; settings, flags
 *            and JSON say 1.5, and the bounds are in thousandths.
 *   SCOPE    what it is given to. CALL: each execution, and it stands beside the request's
 * `limits`, not among them. CELL: an execution, the sandbox has the default. SANDBOX: a sandbox as
 *            a whole. KERNEL: a sandbox, and a further kernel in it may have less.
 *   NAMED    in JSON and as a setting; the flag, which is also what messages say; its unit there
 *   HELP     what the flag takes; what the limit is
 *   DEFAULT  the setting's default, and the variable of another service or NULL
 *   MOST     the same of max_…
 *   LIVE     the same of live_…: its least value, its default (NULL: as without live_), its help
 *
 * Whoever expands the list defines the words that it needs. 0 in a request means the default. */
/* clang-format off */
#define LIMITS(X)                                                                                  \
    X(timeout_ms, MILLI(1, UINT32_MAX), CALL,                                                      \
      NAMED("timeout_ms", "timeout", "s"), HELP("SECONDS", "wall clock"),                          \
      DEFAULT("2000", NULL), MOST("60000", "MAX_EXEC_TIMEOUT_MS"),                                 \
      LIVE(1, "30000", "a cell's wall clock, unless it asks for more"))                            \
    X(memory_mb, NUM(1, 1u << 22), KERNEL,                                                         \
      NAMED("memory_mb", "memory", "MB"), HELP("MB", "memory"),                                    \
      DEFAULT("256", "MEMORY_LIMIT_MB"), MOST("4096", NULL),                                       \
      LIVE(1, "512", "memory of a live sandbox"))                                                  \
    X(cpu_seconds, NUM(1, UINT32_MAX), CELL,                                                       \
      NAMED("cpu_seconds", "cpu", "s"), HELP("SECONDS", "processor time"),                         \
      DEFAULT("5", "CPU_TIME_LIMIT_SEC"), MOST("300", NULL),                                       \
      LIVE(0, "0", "a cell's processor time; 0: as much as its time allows"))                      \
    X(cpus_percent, CORES(10, 1024000), KERNEL,                                                    \
      NAMED("cpus", "cpus", "processors"), HELP("N", "processors at once"),                        \
      DEFAULT("1", NULL), MOST("64", NULL),                                                        \
      LIVE(10, NULL, "processors at once of a live sandbox; cpus unless given"))                   \
    X(pids, NUM(1, 1u << 22), KERNEL,                                                              \
      NAMED("pids", "pids", "processes"), HELP("N", "processes and threads"),                      \
      DEFAULT("64", NULL), MOST("512", NULL),                                                      \
      LIVE(1, NULL, "processes and threads of a live sandbox; pids unless given"))                 \
    X(disk_mb, NUM(1, 1u << 22), SANDBOX,                                                          \
      NAMED("disk_mb", "disk", "MB"),                                                              \
      HELP("MB", "size of /workspace, /tmp and /dev/shm together"),                                \
      DEFAULT("64", NULL), MOST("4096", NULL),                                                     \
      LIVE(1, "512", "size of /workspace, /tmp and /dev/shm of a live sandbox together"))          \
    X(open_files, NUM(16, 1u << 20), SANDBOX,                                                      \
      NAMED("open_files", "open-files", "descriptors"), HELP("N", "open files per process"),       \
      DEFAULT("256", NULL), MOST("4096", NULL),                                                    \
      LIVE(16, NULL, "open files per process of a live sandbox; open_files unless given"))         \
    X(output_bytes, LONG(1, 1u << 30), CELL,                                                       \
      NAMED("output_bytes", "output", "bytes"),                                                    \
      HELP("BYTES", "kept of stdout, and as much of stderr"),                                      \
      DEFAULT("1000000", "MAX_OUTPUT_BYTES"), MOST("67108864", NULL),                              \
      LIVE(1, "16777216", "kept of a cell's stdout, and as much of its stderr"))
/* clang-format on */

#define LIMITS_C_NUM(min, max)   uint32_t
#define LIMITS_C_MILLI(min, max) uint32_t
#define LIMITS_C_CORES(min, max) uint32_t
#define LIMITS_C_LONG(min, max)  uint64_t
struct limits {
#define LIMITS_MEMBER(member, type, ...) LIMITS_C_##type member;
    LIMITS(LIMITS_MEMBER)
#undef LIMITS_MEMBER
};

enum {
#define LIMITS_PLUS(...) +1
    LIMITS_ = LIMITS(LIMITS_PLUS) /* how many there are */
};

enum limit_type { LIMIT_NUM, LIMIT_MILLI, LIMIT_CORES, LIMIT_LONG };
/* Bits, for functions that take several. */
enum limit_scope {
    LIMIT_OF_CALL = 1,
    LIMIT_OF_CELL = 2,
    LIMIT_OF_SANDBOX = 4,
    LIMIT_OF_KERNEL = 8,
    LIMIT_OF_EXECUTION = LIMIT_OF_CALL | LIMIT_OF_CELL,
    LIMIT_OF_WHOLE = LIMIT_OF_SANDBOX | LIMIT_OF_KERNEL, /* the sandbox */
    LIMIT_OF_ANY = LIMIT_OF_EXECUTION | LIMIT_OF_WHOLE,
};

/* A row of the list. */
struct limit_info {
    const char *name;   /* in JSON, and of the setting */
    const char *member; /* in the journal */
    const char *flag;   /* with its dashes; messages say it without */
    const char *unit;
    const char *takes, *help; /* of the flag */
    enum limit_type type;
    enum limit_scope scope;
    size_t offset;
    uint64_t min, max; /* of cores in thousandths */
};
extern const struct limit_info limits_info[LIMITS_];

uint64_t limits_value(const struct limits *l, size_t i);
/* Whether one of these scopes is not 0. */
bool limits_any(const struct limits *l, unsigned scopes);
/* Whether all of these scopes are the same in both. */
bool limits_same(const struct limits *a, const struct limits *b, unsigned scopes);
/* The largest number that the member can hold; limits_set makes that of a larger one. */
uint64_t limits_most(size_t i);
void limits_set(struct limits *l, size_t i, uint64_t v);
/* The second, and where it has 0 the first. */
struct limits limits_over(const struct limits *usual, const struct limits *own);

/* A value for people, with its unit: 1.5 s, 0.5 processors, 100 processes. */
void limits_add_text(struct buf *to, size_t i, uint64_t v);
/* 1000000 is 1 MB, 16777216 is 16 MiB, 100 is 100 bytes. */
void limits_add_bytes(struct buf *to, uint64_t n);

/* In a message: how many there are, and each in the list's order, as u64. New ones come at the
 * list's end: what an older peer does not send is 0, and what it does not know must be.  */
void limits_put(struct wire_out *o, const struct limits *l);
struct limits limits_get(struct wire_in *i);
