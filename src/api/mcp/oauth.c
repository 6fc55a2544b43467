/* See oauth.h. cloche has keys and no OAuth. A client that was refused asks at these paths how to
 * log in, and shows its user what the last of them says; so each says what to do. */

#include "api/mcp/oauth.h"

#include "api/core/call.h"

static const struct field missing_fields[] = {
    HAS("error", FIELD_STRING),
    HAS("error_description", FIELD_STRING, .help = "for the person who sets up the client"),
};
static const struct schema missing_schema = {SCHEMA("NoOAuth", missing_fields)};

static void do_missing(struct call *c) {
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key_str(&j, "error", "not_found");
    jw_key_str(&j, "error_description",
               c->api->has_keys ? "cloche uses API keys: add the header Authorization: Bearer <key>"
                                : "this server asks for no key: connect without authorization");
    jw_object_end(&j);
    call_json(c, 404, &json);
}

/* clang-format off */
#define NONE(method_, path_)                                                                       \
    {{.method = method_, .path = path_, .status = 404, .reply_type = JSON_TYPE,                    \
      .gives = &missing_schema}, do_missing, .is_open = true, .is_free = true}
static const struct route routes[] = {
    NONE("GET", "/.well-known/oauth-protected-resource{rest...}"),
    NONE("GET", "/.well-known/oauth-authorization-server{rest...}"),
    NONE("GET", "/.well-known/openid-configuration{rest...}"),
    NONE("POST", "/register"),
};
/* clang-format on */
const struct route_table oauth_routes = ROUTE_TABLE(routes);
