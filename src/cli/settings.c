/* See settings.h. How a name becomes a flag and a variable is in options.c. */

#include "cli/settings.h"

#include "wire/config.h"

#include <string.h>

#define AT(member)    .offset = offsetof(struct config, member)
#define NOWHERE       .offset = SETTING_NOWHERE
#define NUM(min, max) SETTING_U32, min, max
#define MB            NUM(1, 1u << 22)
#define CORES         SETTING_CORES, 10, 1024000
#define BYTES         SETTING_U64, 1, 1u << 30
#define SINCE(name)   .dialect = name

/* clang-format off */
const struct setting settings[] = {
    {"socket",           SETTING_PATH, 0, 0,              NULL,        AT(socket),
     .help = "the engine's socket"},
    {"profiles",         SETTING_NAMES, 0, 0,             "base,data", NOWHERE,
     .help = "what to start; profiles of the file are added unless this is given"},
    {"pool",             SETTING_AUTO, 0, 1024,           "auto",      NOWHERE,
     SINCE("SANDBOX_POOL_SIZE"), .help = "ready sandboxes per profile; auto: base 4, others 2"},
    {"zygotes",          SETTING_AUTO, 1, 64,             "auto",      NOWHERE,
     .help = "zygotes per profile; auto: as the cores want"},
    {"max_sandboxes",    NUM(1, 100000),                  "64",        AT(max_sandboxes),
     .help = "alive at once, ready ones included"},
    {"queue_max",        NUM(0, 1000000),                 "1000",      AT(queue_max),
     .help = "programs that may wait for a sandbox"},
    {"queue_ms",         NUM(0, 3600000),                 "30000",     AT(queue_ms),
     .help = "how long each may wait"},
    {"memory_budget_mb", NUM(0, 1u << 30),                NULL,        AT(memory_budget_mb),
     .help = "programs under way together; 0: no bound (3/4 of the machine's)"},
    {"zygote_forks",     NUM(1, UINT32_MAX),              "10000",     AT(zygote_forks),
     .help = "a zygote is replaced after so many forks"},
    {"zygote_age_s",     NUM(1, UINT32_MAX),              "3600",      AT(zygote_age_s),
     .help = "or after so many seconds"},
    {"minimum",          SETTING_TEXT, 0, 0,              "strict",    AT(minimum),
     .help = "layers without which nothing runs, see `cloche doctor`"},
    {"cgroup",           SETTING_CHOICE, 0, 0,            "auto",      AT(cgroup),
     .words = "auto v2 v1 none", .help = "control groups: auto, v2, v1 or none"},
    {"id_user",          SETTING_TEXT, 0, 0,              "",          AT(id_user),
     .help = "whose lines of /etc/subuid and /etc/subgid to use"},
    {"log_level",        SETTING_LEVEL, 0, 0,             "info",      AT(log_level),
     SINCE("LOG_LEVEL"), .help = "error, warn, info or debug"},
    {"log_format",       SETTING_CHOICE, 0, 0,            "logfmt",    AT(log_format),
     SINCE("LOG_FORMAT"), .words = "logfmt json plain", .help = "logfmt or json; plain is logfmt"},
    {"libexec",          SETTING_PATH, 0, 0,              NULL,        AT(libexec),
     .help = "where cloche-warden and its fellows are"},

    /* The HTTP service. */
    {"http",             SETTING_CHOICE, 0, 0,            "on",        AT(http.mode),
     .words = "on off", .help = "on or off: serve HTTP"},
    {"host",             SETTING_TEXT, 0, 0,              "127.0.0.1", AT(http.host),
     SINCE("HOST"), .help = "the address to listen on"},
    {"port",             NUM(0, 65535),                   "8000",      AT(http.port),
     SINCE("PORT"), .help = "0: any free one"},
    {"also_listen",      SETTING_TEXT, 0, 0,              "",          AT(http.also),
     .help = "more addresses, with commas: HOST:PORT, or PORT on the same host"},
    {"http_socket",      SETTING_TEXT, 0, 0,              "",          AT(http.unix_path),
     .help = "a unix socket to serve HTTP on as well"},
    {"state_dir",        SETTING_PATH, 0, 0,              NULL,        AT(http.state_dir),
     .help = "where keys, stored files and the audit log are"},
    {"file_dir",         SETTING_TEXT, 0, 0,              "",          AT(http.file_dir),
     SINCE("FILE_STORAGE_DIR"), .help = "stored files; files in the state directory unless given"},
    {"max_file_mb",      MB,                              "100",       AT(http.file_mb),
     SINCE("MAX_FILE_SIZE_MB"), .help = "size of an uploaded file"},
    {"file_ttl_s",       NUM(0, UINT32_MAX),              "3600",      AT(http.file_ttl_s),
     SINCE("FILE_TTL_SEC"), .help = "how long a file is kept; 0: for ever"},
    {"files_mb",         MB,                              "10240",     AT(http.files_mb),
     .help = "all stored files together"},
    {"keys",             SETTING_TEXT, 0, 0,              "",          AT(http.keys),
     .help = "the file of API keys; keys.json in the state directory unless given"},
    {"audit_code",       SETTING_CHOICE, 0, 0,            "off",       AT(http.audit_code),
     .words = "off on", .help = "on or off: programs in the audit log, not only their hash"},
    {"without_keys",     SETTING_CHOICE, 0, 0,            "refuse",    AT(http.without_keys),
     .words = "refuse allow", .help = "allow or refuse to listen beyond loopback with no keys"},
    {"allow_host",       SETTING_TEXT, 0, 0,              "",          AT(http.hosts),
     .help = "names that a server without keys answers to besides loopback's, with commas"},
    {"cors_origin",      SETTING_TEXT, 0, 0,              "",          AT(http.cors_origins),
     .help = "sites whose pages may use it, with commas; * is any"},
    {"dialects",         SETTING_SOME, 0, 0,     "code-interpreter,pyrunner,sandbox-runtime,ipybox,jupyter",
     AT(http.dialects), .words = "code-interpreter pyrunner sandbox-runtime ipybox jupyter",
     .help = "APIs of other services to answer, with commas; the first has shared paths"},
    {"max_connections",  NUM(1, 100000),                  "2000",      AT(http.max_connections),
     .help = "open HTTP connections"},
    {"bodies_mb",        MB,                              "512",       AT(http.bodies_mb),
     .help = "bodies of the requests under way together"},
    {"idle_s",           NUM(1, 86400),                   "75",        AT(http.idle_s),
     .help = "how long a connection may be quiet between two requests"},
    {"drain_s",          NUM(0, 3600),                    "10",        AT(http.drain_s),
     .help = "how long SIGTERM waits for requests under way"},

    /* What a program gets that asks for nothing. */
    {"timeout_ms",       NUM(1, UINT32_MAX),              "2000",      AT(defaults.timeout_ms),
     .help = "a program's wall clock, unless it asks for more"},
    {"memory_mb",        MB,                              "256",       AT(defaults.memory_mb),
     SINCE("MEMORY_LIMIT_MB"), .help = "its memory"},
    {"cpu_seconds",      NUM(1, UINT32_MAX),              "5",         AT(defaults.cpu_seconds),
     SINCE("CPU_TIME_LIMIT_SEC"), .help = "its processor time"},
    {"cpus",             CORES,                           "1",         AT(defaults.cpus_percent),
     .help = "processors at once, fractions allowed"},
    {"pids",             NUM(1, 1u << 22),                "64",        AT(defaults.pids),
     .help = "processes and threads"},
    {"disk_mb",          MB,                              "64",        AT(defaults.disk_mb),
     .help = "size of /workspace, /tmp and /dev/shm together"},
    {"policy_allow",     SETTING_MODULES, 0, 0,           "",          AT(policy_allow),
     .help = "modules that the policy restricted allows besides its own, with commas"},
    {"policy_deny",      SETTING_MODULES, 0, 0,           "",          AT(policy_deny),
     .help = "modules that it refuses besides its own, with commas"},
    {"open_files",       NUM(16, 1u << 20),               "256",       AT(defaults.open_files),
     .help = "open files per process"},
    {"output_bytes",     BYTES,                           "1000000",   AT(defaults.output_bytes),
     SINCE("MAX_OUTPUT_BYTES"), .help = "kept of stdout, and as much of stderr"},

    /* Live sandboxes, which are there over HTTP; what is not said here is as above. */
    {"live",             SETTING_CHOICE, 0, 0,            "on",        NOWHERE,
     .words = "on off", .help = "on or off: interpreters for live sandboxes; off where HTTP is"},
    {"live_pool",        NUM(0, 1024),                    "1",         NOWHERE,
     .help = "ready live sandboxes per profile"},
    {"live_timeout_ms",  NUM(1, UINT32_MAX),              "30000",     AT(live.timeout_ms),
     .help = "a cell's wall clock, unless it asks for more"},
    {"live_memory_mb",   MB,                              "512",       AT(live.memory_mb),
     .help = "memory of a live sandbox"},
    {"live_output_bytes", BYTES,                          "16777216",  AT(live.output_bytes),
     .help = "kept of a cell's stdout, and as much of its stderr"},
    {"live_ttl_seconds", NUM(1, UINT32_MAX),              "3600",      AT(live_ttl_s),
     .help = "how long a live sandbox lives, unless it asks for more"},
    {"live_ttl_max_seconds", NUM(1, UINT32_MAX),          "86400",     AT(live_ttl_max_s),
     .help = "the most that it may ask for"},
    {"live_idle_seconds", NUM(1, UINT32_MAX),             "900",       AT(live_idle_s),
     .help = "how long it may have nothing to do"},
    {"live_per_tenant",  NUM(0, 100000),                  "0",         AT(live_per_tenant),
     .help = "live sandboxes that one tenant may have; 0: no bound"},
    {"live_kernel_memory_mb", NUM(0, 1u << 22),           "0",         AT(live_kernel.memory_mb),
     .help = "memory of each further kernel in one, unless it asks; 0: all that the sandbox has"},
    {"live_kernel_cpus", SETTING_CORES, 0, 1024000,       "0",         AT(live_kernel.cpus_percent),
     .help = "its processors at once; 0: all that the sandbox has"},
    {"live_bind",        SETTING_NAMES, 0, 0,             "",          NOWHERE,
     .help = "host directories in every live sandbox, with commas: HOST:PATH[:rw]"},
    {"live_grace_ms",    NUM(0, 3600000),                 "5000",      AT(live_grace_ms),
     .help = "what a cell has after an interrupt before its kernel is ended"},

    {"jupyter_timeout_s", NUM(0, 4000000),                "0",         AT(http.jupyter_timeout_s),
     .help = "a cell's wall clock in kernels of Jupyter's API; 0: no bound"},
    {"jupyter_idle_seconds", NUM(1, UINT32_MAX),          "14400",     AT(http.jupyter_idle_s),
     .help = "how long their sandbox may have nothing to do and nobody connected"},
    {"jupyter_cull_seconds", NUM(0, UINT32_MAX),          "0",         AT(http.jupyter_cull_s),
     .help = "how long such a kernel may; 0: as long as its sandbox"},

    /* What it may ask for. */
    {"max_timeout_ms",   NUM(1, UINT32_MAX),              "60000",     AT(maxima.timeout_ms),
     SINCE("MAX_EXEC_TIMEOUT_MS"), .help = "the most that a program may ask for"},
    {"max_memory_mb",    MB,                              "4096",      AT(maxima.memory_mb),
     .help = "likewise"},
    {"max_cpu_seconds",  NUM(1, UINT32_MAX),              "300",       AT(maxima.cpu_seconds),
     .help = "likewise"},
    {"max_cpus",         CORES,                           "64",        AT(maxima.cpus_percent),
     .help = "likewise"},
    {"max_pids",         NUM(1, 1u << 22),                "512",       AT(maxima.pids),
     .help = "likewise"},
    {"max_disk_mb",      MB,                              "1024",      AT(maxima.disk_mb),
     .help = "likewise"},
    {"max_open_files",   NUM(16, 1u << 20),               "4096",      AT(maxima.open_files),
     .help = "likewise"},
    {"max_output_bytes", BYTES,                           "67108864",  AT(maxima.output_bytes),
     .help = "likewise"},
    {"pyrunner_max_timeout_s", NUM(1, 300),               "300",       AT(http.pyrunner_timeout_s),
     .help = "the most that a program of POST /run may ask for"},
    {"pyrunner_max_memory_mb", NUM(64, 2048),             "2048",      AT(http.pyrunner_memory_mb),
     .help = "likewise"},

    /* The dialect Sandbox Runtime. */
    {"runtime_replies",  SETTING_CHOICE, 0, 0,            "bare",      AT(http.runtime_replies),
     .words = "bare legacy", .help = "of Sandbox Runtime: bare, or legacy: {result, full_result}"},
    {"runtime_ttl_s",    NUM(1, UINT32_MAX),              "86400",     AT(http.runtime_ttl_s),
     SINCE("WORKSPACE_EXPIRATION_TIME"), .help = "how long its sessions live"},
    {"runtime_timeout_s", NUM(1, 3600),                   "300",       AT(http.runtime_timeout_s),
     SINCE("SANDBOX_TIMEOUT_SECONDS"), .help = "its commands and handlers, unless they ask"},
    {"runtime_memory_kb", NUM(16384, UINT32_MAX),         "262144",    AT(http.runtime_memory_kb),
     SINCE("SANDBOX_MEMORY_LIMIT"), .help = "memory of a handler"},
    {"runtime_pids",     NUM(1, 1u << 22),                "64",        AT(http.runtime_pids),
     SINCE("SANDBOX_MAX_USER_PROGRESS"), .help = "processes and threads of a handler"},
    {"efast_url",        SETTING_TEXT, 0, 0,              "",          AT(http.efast_url),
     SINCE("EFAST_DOWNLOADER_URL"), .help = "the e-fast server that sessions download from"},
    {"efast_allow",      SETTING_TEXT, 0, 0,              "",          AT(http.efast_allow),
     .help = "what else they may download from: beginnings of URLs, with commas"},
    {"efast_token",      SETTING_SECRET, 0, 0,            "",          AT(http.efast_token),
     SINCE("EFAST_TOKEN"), .help = "for efast_url, when a request has none"},
    {"efast_timeout_s",  NUM(1, 3600),                    "300",       AT(http.efast_timeout_s),
     SINCE("DOWNLOADER_TIMEOUT"), .help = "of one download, unless the request asks for less"},
};
/* clang-format on */

_Static_assert(sizeof settings / sizeof settings[0] == SETTINGS_, "settings.h says how many");

size_t setting_find(const char *name) {
    size_t i = 0;
    while (i < SETTINGS_ && strcmp(settings[i].name, name) != 0)
        i++;
    return i;
}
