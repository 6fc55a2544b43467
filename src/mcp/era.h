#pragma once
/* Revisions of the protocol and their two eras. Modern (2026-07-28): every request stands alone.
 * Legacy: a session begins with initialize. One request is of one era, whatever others were.
 * Shared by servers and clients. */

#include <jansson.h>
#include <stdbool.h>

struct jw;

#define MCP_MODERN        "2026-07-28"
#define MCP_LEGACY_NEWEST "2025-11-25"
#define MCP_LEGACY_OLDEST "2025-03-26" /* over HTTP; what a request means that names none */

/* The names in `_meta`. */
#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* The same word as a constant, if we speak that revision; or NULL. */
const char *era_legacy(const char *version);
bool era_is_modern(const char *version); /* one of ours */
/* Whether a request is of the modern era: by its header (or NULL), or by what its body says. */
bool era_of(const char *header, const json_t *params);
/* The member of params._meta, or NULL. */
json_t *era_meta(const json_t *params, const char *name);
/* For a member `supported`: an array of the modern revisions, or of all. */
void era_put_versions(struct jw *j, bool all);

/* What a client can be asked for. */
enum era_can { CAN_ELICIT = 1, CAN_SAMPLE = 2, CAN_ROOTS = 4 };
unsigned era_capabilities(const json_t *object);
/* By the name of the capability, or of the method that needs it; 0: none of these. */
unsigned era_can_of(const char *capability);
unsigned era_can_for(const char *method);
const char *era_capability(unsigned one); /* its name */
