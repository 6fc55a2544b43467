/* See print.h. SECURITY: much of it came out of a sandbox, and a terminal obeys: only plain text is
 * shown. */

#include "profile/print.h"

#include "base/buf.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LABEL 12

static void add_plain(struct buf *to, const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    text_add_plain(to, s ? s : "?", strlen(s ? s : "?"));
}

static void line(const char *label, const char *text) {
    if (*text)
        printf("  %-*s%s\n", LABEL, label, text);
}

static void add_item(struct buf *to, const char *text) {
    buf_adds(to, to->len ? ", " : "");
    text_add_plain(to, text, strlen(text));
}

static void list(const char *label, const json_t *items) {
    AUTO_BUF all = BUF_INIT;
    const json_t *one;
    size_t i;
    json_array_foreach(items, i, one) {
        add_item(&all, json_string_value(one) ? json_string_value(one) : "?");
    }
    line(label, all.data);
}

static double megabytes(const json_t *build) {
    return (double)json_integer_value(json_object_get(build, "bytes")) / (1 << 20);
}

void print_line(const char *name, const json_t *record) {
    const json_t *build = json_object_get(record, "build");
    AUTO_BUF version = BUF_INIT;
    AUTO_BUF made = BUF_INIT;
    add_plain(&version, build, "version");
    add_plain(&made, build, "made");
    printf("%-20s Python %-8s %4zu packages %8.1f MB  %s\n", name, version.data,
           json_array_size(json_object_get(record, "installed")), megabytes(build), made.data);
}

static void print_object(const char *label, const json_t *o) {
    AUTO_BUF all = BUF_INIT;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)o, name, value) {
        AUTO_BUF one = BUF_INIT;
        buf_addf(&one, "%s=", name);
        if (json_is_string(value))
            buf_adds(&one, json_string_value(value));
        else
            buf_addf(&one, "%g", json_number_value(value));
        add_item(&all, one.data);
    }
    line(label, all.data);
}

void print_record(const char *name, const json_t *record) {
    const json_t *build = json_object_get(record, "build"), *one;
    const json_t *profile = json_object_get(record, "profile");
    AUTO_BUF python = BUF_INIT;
    AUTO_BUF packages = BUF_INIT;
    AUTO_BUF live = BUF_INIT;
    size_t i;
    print_line(name, record);
    add_plain(&python, build, "python");
    line("python", python.data);
    list("Debian", json_object_get(build, "apt"));
    list("asked for", json_object_get(build, "requirements"));
    json_array_foreach(json_object_get(record, "installed"), i, one) {
        AUTO_BUF item = BUF_INIT;
        add_plain(&item, one, "name");
        buf_addc(&item, ' ');
        add_plain(&item, one, "version");
        add_item(&packages, item.data);
    }
    line("packages", packages.data);
    list("preload", json_object_get(profile, "preload"));
    list("has threads", json_object_get(build, "lazy"));
    print_object("env", json_object_get(profile, "env"));
    print_object("limits", json_object_get(profile, "limits"));
    list("left out", json_object_get(build, "left_out"));
    if (json_is_string(json_object_get(build, "live_what")))
        add_plain(&live, build, "live_what");
    line("no IPython", live.data);
}

static void print_figure(const json_t *costs) {
    const json_t *ms = json_object_get(costs, "figure_ms");
    AUTO_BUF text = BUF_INIT;
    if (json_is_integer(ms))
        buf_addf(&text, "drawn in %" JSON_INTEGER_FORMAT " ms", json_integer_value(ms));
    else if (json_object_get(costs, "figure_why"))
        add_plain(&text, costs, "figure_why");
    line("figure", text.data);
}

void print_costs(const json_t *costs) {
    const json_t *one, *last = json_object_get(costs, "costs");
    AUTO_BUF imports = BUF_INIT;
    AUTO_BUF live = BUF_INIT;
    size_t i;
    json_array_foreach(json_object_get(costs, "modules"), i, one) {
        AUTO_BUF item = BUF_INIT;
        add_plain(&item, one, "name");
        buf_addf(&item, " %.0f ms", json_number_value(json_object_get(one, "ms")));
        add_item(&imports, item.data);
    }
    line("imports", imports.data);
    json_array_foreach(json_object_get(costs, "lazy"), i, one) {
        AUTO_BUF item = BUF_INIT;
        add_plain(&item, one, "name");
        buf_adds(&item, " starts threads: programs import it themselves, it is not preloaded");
        line("not ahead", item.data);
    }
    printf("  %-*s%.0f MB in the zygote, a fork takes %.2f ms\n", LABEL, "memory",
           json_number_value(json_object_get(last, "memory_mb")),
           json_number_value(json_object_get(last, "fork_ms")));
    print_figure(costs);
    add_plain(&live, costs, "live");
    line("live", live.data);
}
