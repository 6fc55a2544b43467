/* `cloche sandbox ports` and `link`: servers that listen inside. */

#include "remote/sandbox/ports.h"

#include "base/num.h"
#include "cli/report.h"
#include "remote/sandbox/manage.h"
#include "remote/table.h"
#include "remote/value.h"

#include <jansson.h>
#include <stdio.h>

#define PORT_MAX 65535

static void add_port(struct table *t, const json_t *one) {
    char port[16] = "?";
    const json_t *number = json_object_get(one, "port");
    const char *url = value_text(one, "url");
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : 0;
    if (n >= 1 && n <= PORT_MAX)
        snprintf(port, sizeof port, "%d", (int)n);
    table_add(t, (const char *[]){port, *url ? url : value_text(one, "path")});
}

int sandbox_ports(struct sandbox_cmd *b, struct err *e) {
    AUTO_BUF path = BUF_INIT;
    json_auto_t *answer = NULL;
    const json_t *one;
    size_t i;
    if (sandbox_find(b, &path, e) < 0)
        return -1;
    buf_adds(&path, "/ports");
    if (sandbox_cmd_ask(b, "GET", path.data, NULL, &answer, e) < 0)
        return -1;
    if (b->o.json) {
        table_json(answer);
        return 0;
    }
    struct table t = {.columns = 2};
    table_add(&t, (const char *[]){"port", "where"});
    json_array_foreach(json_object_get(answer, "ports"), i, one) add_port(&t, one);
    table_print(&t);
    table_done(&t);
    if (json_is_true(json_object_get(answer, "truncated")))
        report_say("there are more");
    return 0;
}

int sandbox_link(struct sandbox_cmd *b, struct err *e) {
    const struct num_rule rule = {"PORT", 1, PORT_MAX};
    AUTO_BUF path = BUF_INIT;
    json_auto_t *answer = NULL;
    json_auto_t *body = json_object();
    uint32_t port;
    if (num_u32(b->o.words.items[1], &rule, &port, e) < 0 || sandbox_find(b, &path, e) < 0)
        return -1;
    buf_adds(&path, "/links");
    json_object_set_new(body, "port", json_integer(port));
    if (b->o.ttl_s)
        json_object_set_new(body, "ttl_seconds", json_integer(b->o.ttl_s));
    if (sandbox_cmd_ask(b, "POST", path.data, body, &answer, e) < 0)
        return -1;
    if (b->o.json)
        table_json(answer);
    else
        table_line(value_text(answer, "url"));
    return 0;
}
