#pragma once
/* Origins of their own: host names below ports_domain that mean one server in one sandbox, and the
 * links that let a browser in. For api/ only. */

#include "api/core/call.h"

struct link_claim;

#define SITE_PARAM  "cloche_link"
#define SITE_COOKIE "cloche_link"

/* Whether the request is for such a host; c->site is read then. */
bool site_find(struct call *c);
/* Who asks there: as everywhere by a key in a header, or by what a browser has of a link. */
bool site_check_key(struct call *c, struct problem *ret);
/* What a link to that port of a sandbox begins with, up to the path: "http://8000-sbx….DOMAIN". */
void site_url(const struct call *c, const char *id, uint16_t port, struct buf *to);
bool site_is_secure(const struct api *a);
/* The request opens a link: sets the cookie, and leads to the same place without the link. */
void site_open(struct call *c);
/* Whether a parameter, as it stands in a query, is a link. */
bool site_is_link(const char *param);
/* A cookie of ours, in "NAME=VALUE…". */
bool site_is_our_cookie(const char *cookie);
