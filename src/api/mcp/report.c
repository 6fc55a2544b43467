/* See report.h. Images are taken as they come: a record keeps only the last megabytes of its
 * events. The text is put together at the end, from what the record still has.
 *
 * SECURITY: a program may say that anything is an image. One that its reader cannot read may cost a
 * client its whole conversation, so it is looked at first. */

#include "api/mcp/report.h"

#include "api/mcp/cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_OF_IT "all of it is at cloche://execution/%s/output"

/* ---- what an event shows ---- */

/* What models take, and how the base64 of such a file begins. */
static const struct {
    const char *mime, *begins;
} image_types[] = {{"image/png", "iVBORw0KGgo"},
                   {"image/jpeg", "/9j/"},
                   {"image/gif", "R0lGOD"},
                   {"image/webp", "UklGR"}};
static const char svg[] = "image/svg+xml";

static struct json_span inside_of(struct json_span value) {
    bool is_text = value.at && value.len >= 2 && *value.at == '"';
    return is_text ? (struct json_span){value.at + 1, value.len - 2} : (struct json_span){0};
}

static struct json_span data_of(const char *json, size_t len, const char *mime) {
    struct json_span data = json_member(json, len, "data");
    return data.at ? inside_of(json_member(data.at, data.len, mime)) : (struct json_span){0};
}

static bool is_base64(const struct buf *text) {
    static const char known[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    return strspn(text->data, known) == text->len;
}

/* Lines of base64 end with an escaped newline. */
static void join_lines(struct buf *to, struct json_span text) {
    for (const char *at = text.at, *end = at + text.len; at < end;) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        size_t len = (size_t)((slash ? slash : end) - at);
        buf_add(to, at, len);
        at += slash ? len + 2 : len;
    }
}

/* The image in an event, or NULL; as base64 to `to`, which may be NULL. */
static const char *image_in(const char *json, size_t len, struct buf *to) {
    for (size_t i = 0; i < sizeof image_types / sizeof *image_types; i++) {
        size_t n = strlen(image_types[i].begins);
        struct json_span text = data_of(json, len, image_types[i].mime);
        if (text.len < n || memcmp(text.at, image_types[i].begins, n) != 0)
            continue;
        if (!to)
            return image_types[i].mime;
        buf_clear(to);
        join_lines(to, text);
        return is_base64(to) ? image_types[i].mime : NULL;
    }
    return NULL;
}

/* "<Figure size 640x480 with 1 Axes>": it only says what the other forms show. */
static bool is_stand_in(struct json_span plain) {
    return plain.len >= 2 && plain.at[0] == '<' && plain.at[plain.len - 1] == '>';
}

/* What is to be read of it: its text, or the source of a form that has nothing else. */
static struct json_span text_in(const char *json, size_t len, bool keeps_figures) {
    static const char *const others[] = {"text/markdown", "text/latex", "text/html",
                                         "application/javascript"};
    struct json_span plain = data_of(json, len, "text/plain");
    if (keeps_figures || (plain.at && !is_stand_in(plain)))
        return plain;
    if (image_in(json, len, NULL) || data_of(json, len, svg).at)
        return (struct json_span){0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct json_span other = data_of(json, len, others[i]);
        if (other.len)
            return other;
    }
    return plain;
}

static bool is_shown(const char *type) {
    return strcmp(type, "display") == 0 || strcmp(type, "result") == 0;
}

static bool is_printed(const char *type) {
    return strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0;
}

/* ---- images, as they come ---- */

static void image_done(struct report_image *m) {
    buf_done(&m->base64);
    free(m->display_id);
    *m = (struct report_image){.base64 = BUF_INIT};
}

static void clear_images(struct report *r) {
    for (unsigned i = 0; i < r->nimages; i++)
        image_done(&r->images[i]);
    r->nimages = r->nlinks = r->lost = 0;
    r->bytes = 0;
}

void report_done(struct report *r) {
    clear_images(r);
    buf_done(&r->error);
    buf_done(&r->failed);
    buf_done(&r->end);
}

static char *display_id_of(const char *json, size_t len) {
    struct json_span id = inside_of(json_member(json, len, "display_id"));
    return id.at ? xstrndup(id.at, id.len) : NULL;
}

static bool is_update(const char *json, size_t len) {
    struct json_span v = json_member(json, len, "update");
    return v.at && *v.at == 't';
}

static struct report_image *find_image(struct report *r, const char *display_id) {
    for (unsigned i = 0; display_id && i < r->nimages; i++) {
        const char *known = r->images[i].display_id;
        if (known && strcmp(known, display_id) == 0)
            return &r->images[i];
    }
    return NULL;
}

/* An event of so many bytes is kept in the record, as far as its room goes. */
static void add_link(struct report *r, uint64_t number, const char *mime, size_t len) {
    if (r->nlinks < REPORT_LINKS && len < REPORT_IMAGE_MAX)
        r->links[r->nlinks++] = (struct report_link){number, mime};
    else
        r->lost++;
}

static void add_image(struct report *r, const char *json, size_t len, uint64_t number) {
    struct report_image m = {.base64 = BUF_INIT};
    m.mime = image_in(json, len, &m.base64);
    m.display_id = display_id_of(json, len);
    struct report_image *old = is_update(json, len) ? find_image(r, m.display_id) : NULL;
    size_t bytes = r->bytes + m.base64.len - (old ? old->base64.len : 0);
    bool fits = m.base64.len <= REPORT_IMAGE_MAX && bytes <= REPORT_ALL;
    if (!m.mime && data_of(json, len, svg).at) {
        add_link(r, number, svg, len);
    } else if (m.mime && (!fits || (!old && r->nimages == REPORT_IMAGES))) {
        add_link(r, number, m.mime, len);
    } else if (m.mime) {
        if (old)
            image_done(old);
        *(old ? old : &r->images[r->nimages++]) = m;
        r->bytes = bytes;
        return;
    }
    image_done(&m);
}

static void clear_until(struct report *r, uint64_t number) {
    clear_images(r);
    r->cleared = number;
    r->clears_next = false;
}

static void keep_event(struct buf *to, const char *json, size_t len) {
    buf_clear(to);
    buf_add(to, json, len);
}

void report_event(struct report *r, uint64_t number, const char *type, const char *json,
                  size_t len) {
    if (strcmp(type, "error") == 0) {
        keep_event(&r->error, json, len);
    } else if (strcmp(type, "failed") == 0) {
        keep_event(&r->failed, json, len);
    } else if (strcmp(type, "end") == 0) {
        keep_event(&r->end, json, len);
    } else if (strcmp(type, "clear") == 0) {
        struct json_span wait = json_member(json, len, "wait");
        if (wait.at && *wait.at == 't')
            r->clears_next = true;
        else
            clear_until(r, number);
    } else if (is_shown(type) || is_printed(type)) {
        if (r->clears_next)
            clear_until(r, number - 1);
        r->last = number;
        if (is_shown(type))
            add_image(r, json, len, number);
    }
}

/* ---- the text, at the end ---- */

#define TOO_LARGE "[what was shown here is too large to be kept: save it to a file]\\n"
#define UPDATES   64 /* displays, the last ones, that may be updated */

struct gather {
    struct follower follower;
    const struct report *r; /* or NULL: as it was said */
    bool keeps_figures, begun;
    uint64_t last; /* event */
    struct cut cut;
    struct {
        struct json_span id;
        size_t piece;
    } displays[UPDATES];
    unsigned ndisplays;
};

/* The piece that this updates; the number of pieces when there is none. */
static size_t find_piece(const struct gather *g, struct json_span id) {
    for (unsigned i = 0; id.at && i < UPDATES && i < g->ndisplays; i++) {
        struct json_span known = g->displays[i].id;
        if (known.len == id.len && memcmp(known.at, id.at, id.len) == 0)
            return g->displays[i].piece;
    }
    return g->cut.n;
}

static void gather_shown(struct gather *g, const char *json, size_t len) {
    struct json_span text = text_in(json, len, g->keeps_figures);
    struct json_span id = inside_of(json_member(json, len, "display_id"));
    size_t old = is_update(json, len) ? find_piece(g, id) : g->cut.n;
    if (!text.len)
        return;
    if (old < g->cut.n) {
        struct cut_piece *p = &g->cut.pieces[old];
        g->cut.bytes += text.len - p->len;
        *p = (struct cut_piece){text.at, text.len};
        return;
    }
    if (!cut_at_line(&g->cut))
        cut_adds(&g->cut, "\\n");
    if (id.at) {
        g->displays[g->ndisplays % UPDATES].id = id;
        g->displays[g->ndisplays++ % UPDATES].piece = g->cut.n;
    }
    cut_add(&g->cut, text.at, text.len);
    if (!cut_at_line(&g->cut))
        cut_adds(&g->cut, "\\n");
}

static void gather_event(struct follower *f, uint64_t number, const char *type, const char *json,
                         size_t len) {
    struct gather *g = f->arg;
    if (!type || (g->r && number <= g->r->cleared))
        return;
    if (!g->begun && number > (g->r ? g->r->cleared : 0) + 1)
        cut_adds(&g->cut, "[the beginning of the output is not kept]\\n");
    else if (g->begun && number > g->last + 1)
        cut_adds(&g->cut, TOO_LARGE);
    g->begun = true;
    g->last = number;
    if (is_printed(type)) {
        struct json_span text = inside_of(json_member(json, len, "data"));
        cut_add(&g->cut, text.at, text.len);
    } else if (is_shown(type)) {
        gather_shown(g, json, len);
    }
}

/* The pieces lie in the record: they are good for this turn of the loop. */
static void gather(struct gather *g, struct record *rec) {
    g->follower = (struct follower){.is_first = true, .fn = gather_event, .arg = g};
    record_follow(rec, &g->follower);
    record_unfollow(&g->follower); /* it may go on */
    if (g->r && g->r->last > g->r->cleared && g->r->last > g->last)
        cut_adds(&g->cut, TOO_LARGE);
}

static void strip(struct buf *to, size_t from) {
    while (to->len > from && to->data[to->len - 1] == '\n')
        to->data[--to->len] = '\0';
}

bool report_said(const struct report *r, struct record *rec, size_t most, bool keeps_figures,
                 struct buf *to) {
    struct gather g = {.r = r, .keeps_figures = keeps_figures};
    char rest[100];
    size_t from = to->len;
    gather(&g, rec);
    snprintf(rest, sizeof rest, ALL_OF_IT, record_id(rec));
    bool cut = cut_text(&g.cut, most, rest, to);
    strip(to, from);
    cut_done(&g.cut);
    return cut;
}

bool report_output(struct record *rec, size_t most, struct buf *to) {
    struct gather g = {.keeps_figures = true};
    bool fits = true;
    gather(&g, rec);
    for (size_t i = 0; i < g.cut.n && fits; i++) {
        fits = to->len + g.cut.pieces[i].len <= most;
        if (fits)
            buf_add(to, g.cut.pieces[i].at, g.cut.pieces[i].len);
    }
    cut_done(&g.cut);
    return fits;
}

struct looking {
    struct follower follower;
    uint64_t number;
    struct buf *to;
    const char *mime;
};

static void look_event(struct follower *f, uint64_t number, const char *type, const char *json,
                       size_t len) {
    struct looking *k = f->arg;
    if (!type || number != k->number || !is_shown(type))
        return;
    k->mime = image_in(json, len, k->to);
    struct json_span text = data_of(json, len, svg);
    if (!k->mime && text.at) {
        if (k->to) {
            buf_clear(k->to);
            buf_add(k->to, text.at, text.len);
        }
        k->mime = svg;
    }
}

const char *report_image_of(struct record *rec, uint64_t number, struct buf *to) {
    struct looking k = {.number = number, .to = to};
    k.follower =
        (struct follower){.is_first = true, .after = number - 1, .fn = look_event, .arg = &k};
    record_follow(rec, &k.follower);
    record_unfollow(&k.follower);
    return k.mime;
}

void report_settle(struct report *r, struct record *rec) {
    unsigned n = 0;
    for (unsigned i = 0; i < r->nlinks; i++) {
        if (report_image_of(rec, r->links[i].number, NULL))
            r->links[n++] = r->links[i];
    }
    r->lost += r->nlinks - n;
    r->nlinks = n;
}

/* ---- how it ended ---- */

struct json_span report_end(const struct report *r, const char *name) {
    return json_member(r->end.data, r->end.len, name);
}

static bool end_is(const struct report *r, const char *status) {
    struct json_span is = inside_of(report_end(r, "status"));
    return is.len == strlen(status) && memcmp(is.at, status, is.len) == 0;
}

/* Items of a list, each with its text; how many there are. */
static unsigned each_item(struct json_span list, unsigned most,
                          void (*each)(void *arg, struct json_span item), void *arg) {
    unsigned n = 0;
    if (!list.at)
        return 0;
    const char *at = list.at, *end = at + list.len;
    while (at < end && (*at == '[' || *at == ',') && at[1] != ']') {
        struct json_span item = json_first(at + 1, (size_t)(end - at - 1));
        if (n++ < most)
            each(arg, item);
        at = item.at + item.len;
    }
    return n;
}

struct files_to {
    void (*each)(void *arg, const char *path, size_t len);
    void *arg;
};

static void tell_file(void *arg, struct json_span item) {
    const struct files_to *to = arg;
    struct json_span path = inside_of(json_member(item.at, item.len, "path"));
    if (path.at)
        to->each(to->arg, path.at, path.len);
}

unsigned report_files(const struct report *r, unsigned most,
                      void (*each)(void *arg, const char *path, size_t len), void *arg) {
    struct files_to to = {each, arg};
    return each_item(report_end(r, "files"), most, tell_file, &to);
}

static void add_line(struct buf *to, const char *text, size_t len) {
    if (to->len)
        buf_addc(to, '\n');
    buf_add(to, text, len);
}

static void add_warning(void *arg, struct json_span item) {
    AUTO_BUF text = BUF_INIT;
    struct json_span inside = inside_of(item);
    json_unescape(&text, inside.at, inside.len);
    buf_adds(&text, "]");
    add_line(arg, "[", 1);
    buf_add(arg, text.data, text.len);
}

/* What it means for those who go on, after all that it said. */
static void add_end(const struct report *r, const struct report_words *w, struct buf *to) {
    static const char interrupted[] = "[interrupted: variables are as they were then]";
    static const char gone[] =
        "[the kernel ended, and a new one comes: variables are gone, files are there]";
    each_item(report_end(r, "warnings"), 8, add_warning, to);
    if (r->lost)
        buf_addf(to, "%s[%u images more, too many or too large to show: save them to files]",
                 to->len ? "\n" : "", r->lost);
    if (end_is(r, "timeout"))
        add_line(to, w->late, strlen(w->late));
    else if (end_is(r, "interrupted"))
        add_line(to, interrupted, sizeof interrupted - 1);
    else if (end_is(r, "killed") || end_is(r, "memory_exceeded"))
        add_line(to, gone, sizeof gone - 1);
}

static void add_to_cut(void *arg, struct json_span item) {
    struct json_span line = inside_of(item);
    cut_add(arg, line.at, line.len);
    cut_adds(arg, "\\n");
}

/* The exception as it is shown; `most` characters. */
static void add_traceback(const struct report *r, bool is_ipybox, size_t most, struct buf *to) {
    struct cut all = {0};
    struct json_span name = inside_of(json_member(r->error.data, r->error.len, "name"));
    struct json_span value = inside_of(json_member(r->error.data, r->error.len, "value"));
    size_t from = to->len;
    if (is_ipybox) {
        cut_add(&all, name.at, name.len);
        cut_adds(&all, ": ");
        cut_add(&all, value.at, value.len);
        cut_adds(&all, "\\n");
    }
    each_item(json_member(r->error.data, r->error.len, "traceback"), UINT32_MAX, add_to_cut, &all);
    cut_text(&all, most, "", to);
    strip(to, from);
    cut_done(&all);
}

static void add_failure(const struct report *r, struct buf *to) {
    struct json_span error = json_member(r->failed.data, r->failed.len, "error");
    static const char *const members[] = {"message", "remediation"};
    for (size_t i = 0; i < 2; i++) {
        struct json_span text = inside_of(json_member(error.at, error.len, members[i]));
        if (text.len && i)
            buf_adds(to, ": ");
        json_unescape(to, text.at, text.len);
    }
}

static bool ipybox_error(const struct report *r, struct record *rec, const struct report_words *w,
                         struct buf *to) {
    AUTO_BUF said = BUF_INIT;
    buf_adds(to, "Error executing tool execute_ipython_cell: ");
    add_traceback(r, true, w->error / 2, to);
    bool cut = report_said(r, rec, w->error / 3, true, &said);
    if (said.len)
        buf_addf(to, "\n\nOutput before the error:\n%s", said.data);
    return cut;
}

struct report_told report_text(const struct report *r, struct record *rec,
                               const struct report_words *w, struct buf *to) {
    struct report_told told = {.is_error = r->failed.len || !end_is(r, "ok")};
    if (r->failed.len) {
        buf_adds(to, w->is_ipybox ? "Error executing tool execute_ipython_cell: " : "");
        add_failure(r, to);
        return told;
    }
    if (w->is_ipybox && r->error.len) {
        told.cut = ipybox_error(r, rec, w, to);
    } else {
        size_t most = told.is_error ? w->error / 3 : w->text;
        told.cut = report_said(r, rec, most, w->keeps_figures, to);
        if (r->error.len) {
            if (to->len)
                buf_addc(to, '\n');
            add_traceback(r, false, w->error / 2, to);
        }
    }
    if (!w->is_ipybox || told.is_error)
        add_end(r, w, to);
    return told;
}
