/* See receipt.h. */

#include "api/mcp/receipt.h"

#include "api/mcp/place.h"
#include "base/json.h"

void receipt_link(struct mcp_call *c, const char *execution) {
    AUTO_BUF uri = BUF_INIT;
    buf_addf(&uri, "cloche://execution/%s/output", execution);
    mcp_link(c, &(struct mcp_link){.uri = uri.data,
                                   .name = "output",
                                   .description = "all of the text that was cut here",
                                   .mime = "text/plain"});
}

void receipt_put(struct mcp_call *c, const struct report *r, const char *execution,
                 const char *sandbox) {
    static const char *const members[] = {"status",      "exit_code", "execution_count",
                                          "duration_ms", "limit_hit", "denied",
                                          "usage",       "profile"};
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "execution", execution);
    jw_key_str(&j, "sandbox", place_name(c));
    jw_key_str(&j, "sandbox_id", sandbox);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct json_span value = report_end(r, members[i]);
        if (!value.at)
            continue;
        jw_key(&j, members[i]);
        jw_raw(&j, value.at, value.len);
    }
    jw_object_end(&j);
    mcp_meta(c, "dev.cloche/receipt", json.data, json.len);
}
