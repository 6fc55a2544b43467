#pragma once
/* A live sandbox as others see it. */

#include "base/buf.h"
#include "base/schema.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct live;

const char *live_id(const struct live *l);
double live_created(const struct live *l), live_expires(const struct live *l); /* unix time */
const char *live_tenant(const struct live *l);
const char *live_profile(const struct live *l);
const char *live_python(const struct live *l);   /* the version; or "" */
const char *live_metadata(const struct live *l); /* JSON */
const char *live_alias(const struct live *l);    /* or NULL */
const struct limits *live_limits(const struct live *l);
bool live_is_paused(const struct live *l);
bool live_listens(const struct live *l);  /* it was asked for a port of its own */
uint16_t live_port(const struct live *l); /* that port; 0: it has none */
extern const struct schema live_schema;
void live_json(struct live *l, struct buf *to);
