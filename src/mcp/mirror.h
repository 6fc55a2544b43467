#pragma once
/* What a modern client says in headers besides the body (Mcp-Method, Mcp-Name, Mcp-Param-…): a
 * proxy that routes by headers and we must read the same. For this directory only. */

#include <jansson.h>
#include <stdbool.h>

struct http_req;
struct mcp_call;
struct rpc;

/* Of the method and name; what is wrong, a constant, or NULL. */
const char *mirror_wrong(struct http_req *r, const struct rpc *m);
/* Of the arguments that the tool's schema marks with x-mcp-header; false: the call has its answer.
 */
bool mirror_check(struct mcp_call *c, struct http_req *r, const json_t *schema);
/* The one header of that name; NULL: there is none. False: there are several that differ. */
bool mirror_header(struct http_req *r, const char *name, const char **ret);
