/* Resources: the files of sandboxes, and what executions said (docs/mcp.md). A URI that is
 * nobody's, or another tenant's, names no resource.
 *
 * SECURITY: a name in a URI is looked up among the tenant's own sandboxes and records, and nowhere
 * else; a path goes the way of every path of a request (file_job.h). None makes a sandbox. */

#include "api/core/api_state.h"
#include "api/files/file_type.h"
#include "api/files/paths.h"
#include "api/jobs/records.h"
#include "api/mcp/place.h"
#include "api/mcp/reading.h"
#include "api/mcp/report.h"
#include "api/mcp/tools.h"
#include "base/clock.h"
#include "base/num.h"

#include <inttypes.h>
#include <string.h>

#define OUTPUT_MAX (4u << 20) /* a record has no more */
#define LISTED     100u       /* files made lately, */
#define LATELY_S   3600u      /* which is this long ago */
#define DEPTH      8u
#define COMPLETED  100u

/* ---- a file ---- */

static void file_on_bytes(struct reading *r, const struct window *w) {
    struct mcp_call *c = r->f.call;
    const char *uri = mcp_uri(c), *type = file_type(r->f.path);
    bool is_text =
        json_is_utf8(w->text.data, w->text.len) && !memchr(w->text.data, '\0', w->text.len);
    AUTO_BUF why = BUF_INIT;
    if (w->kind == WINDOW_LARGE) {
        buf_addf(&why, "the file has %" PRIu64 " bytes, and at most %u can be read here", w->size,
                 WINDOW_WHOLE);
        mcp_fail(c, -32602, why.data, NULL);
        return;
    }
    if (is_text)
        mcp_contents_text(c, uri, strncmp(type, "application/octet", 17) == 0 ? "text/plain" : type,
                          w->text.data, w->text.len);
    else
        mcp_contents_blob(c, uri, type, w->text.data, w->text.len);
    mcp_answer(c);
}

static void read_sandbox_file(struct mcp_call *c) {
    const char *name = mcp_variable(c, "name"), *path = mcp_variable(c, "path");
    struct live *l = name && path ? place_find(c, name) : NULL;
    if (l)
        reading_begin(c, l, path, &(struct window){.whole = true}, file_on_bytes);
    else
        mcp_fail_no_resource(c);
}

static void list_file(const struct file_job *f, const struct change *made) {
    AUTO_BUF uri = BUF_INIT;
    buf_addf(&uri, "cloche://sandbox/%s/", place_name(f->call));
    paths_encode(made->path, &uri);
    mcp_listed(f->call, &(struct mcp_link){.uri = uri.data,
                                           .name = made->path,
                                           .mime = file_type(made->path),
                                           .size = (int64_t)made->size});
}

static void files_on_changes(struct file_job *f, struct file_answer *a) {
    for (unsigned i = 0; i < a->changes.n; i++)
        list_file(f, &a->changes.items[i]);
    mcp_answer(f->call);
}

static void list_lately(struct mcp_call *c) {
    struct live *l = place_find(c, place_name(c));
    struct timespec now;
    if (!l) {
        mcp_answer(c);
        return;
    }
    struct file_job *f = file_job_new(c, l, "", sizeof *f, NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    if (f)
        file_job_ask(
            f,
            &(struct file_question){.op = FILE_CHANGES,
                                    .most = LISTED,
                                    .depth = DEPTH,
                                    .since_ns = ((uint64_t)now.tv_sec - LATELY_S) * 1000000000u},
            files_on_changes);
}

/* ---- completion ---- */

static void complete_names(struct mcp_call *c, const char *value) {
    unsigned n = 0;
    for (struct live *l = place_next(c, NULL); l && n < COMPLETED; l = place_next(c, l)) {
        const char *name = place_name_of(l);
        if (strncmp(name, value, strlen(value)) != 0)
            continue;
        mcp_complete(c, name);
        n++;
    }
    mcp_answer(c);
}

struct completing {
    struct file_job f;
    struct buf value; /* owned: the beginning of a path */
};

static void completing_done(struct file_job *f) {
    struct completing *x = (struct completing *)f;
    buf_done(&x->value);
}

static void complete_on_list(struct file_job *f, struct file_answer *a) {
    const struct completing *x = (const struct completing *)f;
    struct entry e;
    unsigned n = 0;
    while (n < COMPLETED && file_page_next(&a->page, &e) > 0) {
        if (strncmp(e.path, x->value.data, x->value.len) != 0)
            continue;
        AUTO_BUF path = BUF_INIT;
        buf_addf(&path, "%s%s", e.path, e.type == ENTRY_DIRECTORY ? "/" : "");
        mcp_complete(f->call, path.data);
        n++;
    }
    mcp_answer(f->call);
}

/* There is no such directory: nothing to say. */
static bool complete_on_error(struct file_job *f, int errnum) {
    (void)errnum;
    mcp_answer(f->call);
    return true;
}

static void complete_paths(struct mcp_call *c, const char *value) {
    const char *name = mcp_variable(c, "name");
    struct live *l = place_find(c, name ? name : place_name(c));
    const char *slash = strrchr(value, '/');
    AUTO_BUF dir = BUF_INIT;
    if (!l) {
        mcp_answer(c);
        return;
    }
    buf_add(&dir, value, slash ? (size_t)(slash - value) : 0);
    struct completing *x = file_job_new(c, l, dir.data, sizeof *x, completing_done);
    if (!x)
        return;
    x->value = (struct buf)BUF_INIT;
    buf_adds(&x->value, value);
    x->f.on_error = complete_on_error;
    file_job_ask(&x->f, &(struct file_question){.op = FILE_LIST, .path = x->f.path, .most = 1000},
                 complete_on_list);
}

static void complete_file(struct mcp_call *c, const char *name, const char *value) {
    if (strcmp(name, "name") == 0)
        complete_names(c, value);
    else
        complete_paths(c, value);
}

const struct mcp_template sandbox_file_template = {
    .uri = "cloche://sandbox/{name}/{+path}",
    .name = "file",
    .title = "A file of a sandbox",
    .description = "A file of the workspace of a sandbox; those made within the last hour are "
                   "listed.",
    .read = read_sandbox_file,
    .list = list_lately,
    .complete = complete_file,
};

/* ---- executions ---- */

/* NULL: the call has its answer. */
static struct record *record_named(struct mcp_call *c) {
    const struct caller *who = &mcp_who(c)->caller;
    const char *id = mcp_variable(c, "id");
    struct record *rec = id ? records_find(who->api->records, who->tenant, id) : NULL;
    if (!rec)
        mcp_fail_no_resource(c);
    return rec;
}

static void read_output(struct mcp_call *c) {
    struct record *rec = record_named(c);
    AUTO_BUF inside = BUF_INIT;
    if (!rec)
        return;
    report_output(rec, OUTPUT_MAX, &inside);
    mcp_contents_inside(c, mcp_uri(c), "text/plain", false, &inside);
    mcp_answer(c);
}

const struct mcp_template output_template = {
    .uri = "cloche://execution/{id}/output",
    .name = "output",
    .title = "What an execution printed",
    .description = "All that a call printed and showed as text, for some minutes after it.",
    .mime = "text/plain",
    .read = read_output,
};

static void read_image(struct mcp_call *c) {
    const struct num_rule rule = {"number", 1, UINT32_MAX};
    struct record *rec = record_named(c);
    AUTO_BUF inside = BUF_INIT;
    uint64_t number;
    struct err e;
    if (!rec)
        return;
    const char *given = mcp_variable(c, "number"), *mime = NULL;
    if (given && num_u64(given, &rule, &number, &e) == 0)
        mime = report_image_of(rec, number, &inside);
    if (!mime) {
        mcp_fail_no_resource(c);
        return;
    }
    mcp_contents_inside(c, mcp_uri(c), mime, strcmp(mime, "image/svg+xml") != 0, &inside);
    mcp_answer(c);
}

const struct mcp_template image_template = {
    .uri = "cloche://execution/{id}/image/{number}",
    .name = "image",
    .title = "An image that an execution showed",
    .description = "One of those for which the answer of a call had no room.",
    .read = read_image,
};
