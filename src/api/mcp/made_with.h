#pragma once
/* The header Cloche-Sandbox of an MCP client: what sandboxes are made with that no URL should tell,
 * because a URL is in logs: {"env": {…}, "binds": […]}, as in POST /v1/sandboxes. For api/ only. */

#include "api/core/call.h"

struct live_request;

/* *ret is NULL where there is no such header; the caller's. -1 with a problem. */
int made_with_read(const struct call *c, json_t **ret, struct problem *p);
/* For a sandbox that is made. */
int made_with_fill(struct api *a, const json_t *with, struct live_request *q, struct problem *p);
