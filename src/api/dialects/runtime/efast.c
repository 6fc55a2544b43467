/* Sandbox Runtime: POST /download_from_efast, files from an e-fast server (AnyShare) into a
 * session. One after the other: e-fast is asked where a file is (osdownload), which answers with a
 * URL and headers; what is there goes into a file without a name as it comes, which gets its name
 * when it is whole.
 *
 * SECURITY: it is the server that asks, from the operator's own network. So both URLs must be
 * allowed by the operator (efast_url, efast_allow), redirects are not followed, and what a session
 * may get is bounded by its disk. The token is sent to e-fast only. */

#include "api/dialects/runtime/runtime.h"
#include "api/files/paths.h"
#include "api/jobs/inputs.h"
#include "base/fd.h"
#include "fetch/allow.h"
#include "fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHERE        "/api/efast/v1/file/osdownload/"
#define FILES_MAX    100
#define ANSWER_MAX   (1u << 20)
#define HEADERS_MAX  20
#define DEFAULT_NAME "download_file"
#define NOT_ALLOWED                                                                                \
    "this server is not allowed to download from %.200s; its operator may allow it with "          \
    "--efast-url or --efast-allow"

static const struct field file_fields[] = {
    {.name = "docid", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "rev", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "savename", .type = FIELD_STRING, .flags = FIELD_NULLABLE},
};
static const struct schema file_schema = {"EfastFile", file_fields, 3, true};
static const struct field efast_fields[] = {
    {.name = "file_params",
     .type = FIELD_LIST,
     .flags = FIELD_REQUIRED | FIELD_MAX,
     .max = FILES_MAX,
     .of = &file_schema,
     .help = "docid, and perhaps rev and savename, of each file"},
    {.name = "efast_url",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "null",
     .help = "another server than the operator's, if that is allowed"},
    {.name = "save_path",
     .type = FIELD_STRING,
     .flags = FIELD_NULLABLE,
     .fallback = "\"\"",
     .help = "a directory of the session"},
    {.name = "token", .type = FIELD_STRING, .flags = FIELD_NULLABLE, .fallback = "null"},
    {.name = "timeout",
     .type = FIELD_INT,
     .flags = FIELD_NULLABLE | FIELD_LAX | FIELD_MIN | FIELD_MAX,
     .min = 1,
     .max = 3600,
     .fallback = "300",
     .help = "seconds, of each file"},
};
static const struct schema runtime_efast_schema = {"RuntimeEfast", efast_fields, 5, true};

struct efast {
    struct file_call fc; /* its path is the directory */
    size_t at;           /* the file at hand */
    unsigned good;
    struct fetch *fetch; /* borrowed while it is under way */
    struct buf answer;   /* of e-fast */
    json_t *told;        /* owned: the same, read; or NULL */
    int fd;              /* owned: without a name yet */
    uint64_t size;
    char write_error[ERR_TEXT_MAX]; /* "": none */
    char *name;                     /* owned: what it will be called */
    struct buf results;             /* objects with commas between */
    struct jw j;                    /* into that */
};

static void next_file(struct efast *x);

static void forget_file(struct efast *x) {
    json_decref(x->told);
    x->told = NULL;
    file_call_close(&x->fc, &x->fd);
    free(x->name);
    x->name = NULL;
    buf_clear(&x->answer);
    x->size = 0;
    x->write_error[0] = '\0';
}

static void free_efast(struct file_call *fc) {
    struct efast *x = (struct efast *)fc;
    if (x->fetch)
        fetch_cancel(x->fetch);
    forget_file(x);
    buf_done(&x->answer);
    buf_done(&x->results);
}

static const json_t *param(const struct efast *x) {
    return json_array_get(json_object_get(x->fc.call->body, "file_params"), x->at);
}

/* ---- what became of it ---- */

static void put_params(struct efast *x) {
    jw_key_uint(&x->j, "index", x->at);
    jw_key_str(&x->j, "docid", field_str(param(x), "docid", ""));
    jw_key_str(&x->j, "rev", field_str(param(x), "rev", ""));
}

static void put_path(struct efast *x, const char *key, const char *name) {
    AUTO_BUF path = BUF_INIT;
    buf_addf(&path, "/workspace%s%s%s%s", *x->fc.path ? "/" : "", x->fc.path, name ? "/" : "",
             name ? name : "");
    jw_key_str(&x->j, key, path.data);
}

static void put_good(struct efast *x) {
    jw_object(&x->j);
    jw_key_bool(&x->j, "success", true);
    put_params(x);
    jw_key_str(&x->j, "savename", x->name);
    put_path(x, "file_path", x->name);
    jw_key(&x->j, "file_info");
    jw_object(&x->j);
    jw_key_str(&x->j, "name", x->name);
    jw_key_uint(&x->j, "size", x->size);
    jw_key_str(&x->j, "rev", field_str(x->told, "rev", ""));
    jw_object_end(&x->j);
    jw_key_uint(&x->j, "downloaded_size", x->size);
    jw_key_uint(&x->j, "total_size", x->size);
    jw_object_end(&x->j);
    x->good++;
}

static void finish(struct efast *x) {
    AUTO_BUF json = BUF_INIT;
    AUTO_BUF message = BUF_INIT;
    struct jw j = JW_INIT(&json);
    buf_addf(&message, "下载完成: %u个成功, 共%zu 个文件", x->good, x->at);
    jw_object(&j);
    jw_key_str(&j, "message", message.data);
    jw_key_uint(&j, "success_count", x->good);
    jw_key_uint(&j, "failed_count", x->at - x->good);
    jw_key_uint(&j, "total_count", x->at);
    jw_key(&j, "results");
    jw_array(&j);
    jw_raw(&j, x->results.data, x->results.len);
    jw_array_end(&j);
    jw_key_str(&j, "save_path", *x->fc.path ? x->fc.path : "/workspace");
    jw_object_end(&j);
    runtime_reply(x->fc.call, &json);
}

static void go_on(struct efast *x) {
    forget_file(x);
    x->at++;
    if (x->at < json_array_size(json_object_get(x->fc.call->body, "file_params")))
        next_file(x);
    else
        finish(x);
}

static void failed(struct efast *x, const char *why) {
    jw_object(&x->j);
    jw_key_bool(&x->j, "success", false);
    jw_key_str(&x->j, "error", why);
    put_params(x);
    jw_key_str(&x->j, "savename", field_str(param(x), "savename", ""));
    put_path(x, "save_path", NULL);
    jw_object_end(&x->j);
    go_on(x);
}

/* ---- the file ---- */

static bool efast_on_error(struct file_call *fc, int errnum) {
    char why[200];
    snprintf(why, sizeof why, "it cannot be saved: %s", strerror(errnum));
    failed((struct efast *)fc, why);
    return true;
}

static void efast_on_place(struct file_call *fc, struct file_answer *a) {
    struct efast *x = (struct efast *)fc;
    (void)a;
    put_good(x);
    go_on(x);
}

static void efast_on_file_done(void *arg, const char *why) {
    struct efast *x = arg;
    AUTO_BUF path = BUF_INIT;
    x->fetch = NULL;
    if (*x->write_error || why) {
        failed(x, *x->write_error ? x->write_error : why);
        return;
    }
    buf_addf(&path, "%s%s%s", x->fc.path, *x->fc.path ? "/" : "", x->name);
    if (path.len > ENTRY_PATH_MAX) {
        failed(x, "its path has more than 4095 bytes");
        return;
    }
    x->fc.on_error = efast_on_error;
    file_call_ask(
        &x->fc,
        &(struct file_question){.op = FILE_PLACE, .path = path.data, .mode = 0644, .fd = x->fd},
        efast_on_place);
}

static bool efast_on_file_data(void *arg, const void *data, size_t len) {
    struct efast *x = arg;
    const struct call *c = x->fc.call;
    struct err e;
    struct live *l = live_find(c->api->o.engine, c->who.tenant, x->fc.id, &e);
    if (!l || files_write(live_sandbox(l), x->fd, &(struct file_piece){data, len, x->size}, &e) < 0)
        snprintf(x->write_error, sizeof x->write_error, "%s",
                 *e.kind ? e.text : "the session's disk has no room for all of it");
    x->size += len;
    return !*x->write_error;
}

static uint32_t timeout_of(const struct efast *x) {
    uint32_t usual = x->fc.call->api->config->runtime.efast_timeout_s;
    int64_t asked = field_int_lax(x->fc.call->body, "timeout", usual);
    return asked < usual ? (uint32_t)asked : usual;
}

static void start(struct efast *x, const struct fetch_request *q) {
    const struct api *a = x->fc.call->api;
    struct runtime *r = dialect_state(a, &runtime_dialect);
    struct err e;
    if ((!r->fetcher && fetcher_new(a->o.loop, &r->fetcher, &e) < 0) ||
        fetch_start(r->fetcher, q, &x->fetch, &e) < 0)
        failed(x, e.text);
}

/* What e-fast says is sent on, but for what is ours to say. For libcurl "Name;" is a header as
 * well, an empty one. */
static bool is_good_header(const char *line) {
    static const char *const ours[] = {"host", "content-length", "transfer-encoding"};
    size_t len = strcspn(line, ":; \t");
    bool good = len > 0 && line[len] == ':' && !strpbrk(line, "\r\n");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        good = good && (len != strlen(ours[i]) || strncasecmp(line, ours[i], len) != 0);
    return good;
}

static void efast_on_temp(struct file_call *fc, struct file_answer *a) {
    struct efast *x = (struct efast *)fc;
    const json_t *request = json_object_get(x->told, "authrequest");
    const char *headers[HEADERS_MAX + 1];
    unsigned n = 0;
    x->fd = fd_take(&a->fd);
    for (size_t i = 2; i < json_array_size(request) && n < HEADERS_MAX; i++) {
        const char *line = json_string_value(json_array_get(request, i));
        if (line && is_good_header(line))
            headers[n++] = line;
    }
    headers[n] = NULL;
    start(x, &(struct fetch_request){.url = json_string_value(json_array_get(request, 1)),
                                     .headers = headers,
                                     .timeout_s = timeout_of(x),
                                     .arg = x,
                                     .on_data = efast_on_file_data,
                                     .on_done = efast_on_file_done});
}

/* ---- where it is ---- */

static void allowed_urls(const struct api *a, struct buf *to) {
    const struct config_runtime *h = &a->config->runtime;
    buf_addf(to, "%s,%s", h->efast_url, h->efast_allow);
}

/* Its own name, or what e-fast calls it: without directories. */
static char *name_of(const struct efast *x) {
    const char *asked = field_str(param(x), "savename", "");
    const char *told = paths_name(field_str(x->told, "name", ""));
    if (*asked)
        return xstrdup(asked);
    bool bad = !*told || strcmp(told, ".") == 0 || strcmp(told, "..") == 0;
    return xstrdup(bad ? DEFAULT_NAME : told);
}

static void ask_for_file(struct efast *x) {
    AUTO_BUF allowed = BUF_INIT;
    const json_t *request = json_object_get(x->told, "authrequest");
    const char *url = json_string_value(json_array_get(request, 1));
    char why[600];
    allowed_urls(x->fc.call->api, &allowed);
    if (!url) {
        failed(x, "e-fast answered without an authrequest");
    } else if (!fetch_is_allowed(url, allowed.data)) {
        snprintf(why, sizeof why, NOT_ALLOWED, url);
        failed(x, why);
    } else {
        x->name = name_of(x);
        x->fc.on_error = efast_on_error;
        file_call_ask(&x->fc, &(struct file_question){.op = FILE_TEMP}, efast_on_temp);
    }
}

static bool efast_on_answer_data(void *arg, const void *data, size_t len) {
    struct efast *x = arg;
    buf_add(&x->answer, data, len);
    return x->answer.len <= ANSWER_MAX;
}

static void efast_on_answer_done(void *arg, const char *why) {
    struct efast *x = arg;
    struct err e;
    x->fetch = NULL;
    if (x->answer.len > ANSWER_MAX)
        failed(x, "e-fast answered with more than 1 MiB");
    else if (why)
        failed(x, why);
    else if (json_read(x->answer.data, x->answer.len, JSON_DEPTH_MAX, &x->told, &e) < 0)
        failed(x, "e-fast answered with something that is no JSON");
    else
        ask_for_file(x);
}

static const char *url_of(const struct call *c) {
    const char *asked = field_str(c->body, "efast_url", "");
    return *asked ? asked : c->api->config->runtime.efast_url;
}

/* SECURITY: the operator's token goes to the operator's own server only. */
static const char *token_of(const struct call *c) {
    bool elsewhere = *field_str(c->body, "efast_url", "");
    return field_str(c->body, "token", elsewhere ? "" : c->api->config->runtime.efast_token);
}

static void put_question(const struct efast *x, struct buf *to) {
    static const char *const names[] = {"docid", "savename", "rev"};
    struct jw j = JW_INIT(to);
    jw_object(&j);
    for (size_t i = 0; i < 3; i++) {
        const char *text = field_str(param(x), names[i], "");
        if (*text)
            jw_key_str(&j, names[i], text);
    }
    jw_object_end(&j);
}

static void next_file(struct efast *x) {
    const struct call *c = x->fc.call;
    const char *token = token_of(c);
    AUTO_BUF url = BUF_INIT, body = BUF_INIT, bearer = BUF_INIT;
    const char *headers[2] = {NULL, NULL};
    const char *base = url_of(c);
    size_t len = strlen(base);
    while (len > 0 && base[len - 1] == '/')
        len--;
    buf_add(&url, base, len);
    buf_adds(&url, WHERE);
    put_question(x, &body);
    if (*token) {
        buf_addf(&bearer, "Authorization: Bearer %s", token);
        headers[0] = bearer.data;
    }
    start(x, &(struct fetch_request){.url = url.data,
                                     .body = body.data,
                                     .headers = headers,
                                     .timeout_s = timeout_of(x),
                                     .arg = x,
                                     .on_data = efast_on_answer_data,
                                     .on_done = efast_on_answer_done});
}

/* ---- the request ---- */

static void download_all(struct call *c, struct live *l) {
    struct efast *x =
        runtime_file_call(c, l, field_str(c->body, "save_path", ""), sizeof *x, free_efast);
    if (!x)
        return;
    x->fd = -1;
    x->answer = x->results = (struct buf)BUF_INIT;
    x->j = (struct jw)JW_INIT(&x->results);
    next_file(x);
}

/* The checks of Sandbox Runtime, before anything is made. */
static bool params_are_good(struct call *c) {
    const json_t *params = json_object_get(c->body, "file_params"), *v;
    size_t i;
    if (json_array_size(params) == 0) {
        runtime_error(c, 400, "bad_value", "No file parameters provided");
        return false;
    }
    json_array_foreach(params, i, v) {
        const char *name = field_str(v, "savename", "");
        if (!*field_str(v, "docid", "")) {
            runtime_error(c, 400, "bad_value", "Missing docid in file_params[%zu]", i);
            return false;
        }
        if (strstr(name, "..") || *name == '/') {
            runtime_error(c, 400, "bad_value", "Invalid filename: %.200s (cannot %s)", name,
                          *name == '/' ? "begin with '/'" : "contain '..'");
            return false;
        }
    }
    return true;
}

static bool server_is_allowed(struct call *c) {
    AUTO_BUF allowed = BUF_INIT;
    const char *token = field_str(c->body, "token", "");
    allowed_urls(c->api, &allowed);
    if (!*url_of(c)) {
        runtime_error(c, 400, "efast_off",
                      "no e-fast server is configured here; its operator may name one with "
                      "--efast-url (EFAST_DOWNLOADER_URL)");
    } else if (strpbrk(url_of(c), "?#") || !fetch_is_allowed(url_of(c), allowed.data)) {
        runtime_error(c, 400, "efast_not_allowed", NOT_ALLOWED, url_of(c));
    } else if (strpbrk(token, "\r\n")) {
        runtime_error(c, 400, "bad_value", "token has a line break");
    } else {
        return true;
    }
    return false;
}

static void do_runtime_efast(struct call *c) {
    if (runtime_enter(c) && params_are_good(c) && server_is_allowed(c))
        runtime_use(c, download_all);
}

#define FIELDS_OF_PARAMS                                                                           \
    HAS("index", FIELD_INT), HAS("docid", FIELD_STRING), HAS("rev", FIELD_STRING)
#define YES_OR_NO HAS("success", FIELD_BOOL), FIELDS_OF_PARAMS, HAS("savename", FIELD_STRING)

static const struct field info_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("size", FIELD_INT),
    HAS("rev", FIELD_STRING),
};
static const struct schema info_schema = {SCHEMA("EfastInfo", info_fields)};
static const struct field good_fields[] = {
    YES_OR_NO,
    HAS("file_path", FIELD_STRING),
    HAS("file_info", OBJECT(info_schema)),
    HAS("downloaded_size", FIELD_INT),
    HAS("total_size", FIELD_INT),
};
static const struct schema good_schema = {SCHEMA("EfastDone", good_fields)};
static const struct field bad_fields[] = {
    YES_OR_NO,
    HAS("error", FIELD_STRING),
    HAS("save_path", FIELD_STRING),
};
static const struct schema bad_schema = {SCHEMA("EfastFailed", bad_fields)};
static const struct schema one_schema = {"EfastOne", ONE_OF(&good_schema, &bad_schema)};
static const struct field all_fields[] = {
    HAS("message", FIELD_STRING),        HAS("success_count", FIELD_INT),
    HAS("failed_count", FIELD_INT),      HAS("total_count", FIELD_INT),
    HAS("results", LIST_OF(one_schema)), HAS("save_path", FIELD_STRING),
};
RUNTIME_REPLY(all_reply, "EfastResult", all_fields);

/* ---- routes ---- */

/* clang-format off */
static const struct route routes[] = {
    {{"POST", "/workspace/se/download_from_efast/{session_id}", "Download files from e-fast to a "
      "session", "sandbox-runtime", &runtime_efast_schema, NULL, 200, "what became of each",
      JSON_TYPE, .gives = &all_reply,
      .errors = ERRORS_OF_SESSION_FILE "efast_off efast_not_allowed"}, do_runtime_efast, .body_max = MB},
};
/* clang-format on */
const struct route_table runtime_efast_routes = ROUTE_TABLE(routes);
