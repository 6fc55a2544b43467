/* See era.h. */

#include "mcp/era.h"

#include "base/json.h"

#include <string.h>

static const char *const legacy[] = {MCP_LEGACY_NEWEST, "2025-06-18", MCP_LEGACY_OLDEST};
#define NLEGACY (sizeof legacy / sizeof *legacy)

static const struct {
    enum era_can can;
    const char *capability, *method;
} abilities[] = {
    {CAN_ELICIT, "elicitation", "elicitation/create"},
    {CAN_SAMPLE, "sampling", "sampling/createMessage"},
    {CAN_ROOTS, "roots", "roots/list"},
};
#define NABILITIES (sizeof abilities / sizeof *abilities)

const char *era_legacy(const char *version) {
    for (size_t i = 0; version && i < NLEGACY; i++)
        if (strcmp(version, legacy[i]) == 0)
            return legacy[i];
    return NULL;
}

bool era_is_modern(const char *version) {
    return version && strcmp(version, MCP_MODERN) == 0;
}

/* Revisions are dates: 2026-07-28. */
static bool is_date(const char *version) {
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == '-' ? version[i] != '-' : version[i] < '0' || version[i] > '9')
            return false;
    return version[sizeof form - 1] == '\0';
}

bool era_of(const char *header, const json_t *params) {
    if (header && is_date(header) && strcmp(header, MCP_MODERN) >= 0)
        return true;
    return era_meta(params, META_VERSION) != NULL;
}

json_t *era_meta(const json_t *params, const char *name) {
    return json_object_get(json_object_get(params, "_meta"), name);
}

void era_put_versions(struct jw *j, bool all) {
    jw_array(j);
    jw_str(j, MCP_MODERN);
    for (size_t i = 0; all && i < NLEGACY; i++)
        jw_str(j, legacy[i]);
    jw_array_end(j);
}

unsigned era_capabilities(const json_t *object) {
    unsigned can = 0;
    for (size_t i = 0; i < NABILITIES; i++) {
        const json_t *one = json_object_get(object, abilities[i].capability);
        if (!json_is_object(one))
            continue;
        /* since 2025-11-25 a client may take questions by URL only */
        if (abilities[i].can == CAN_ELICIT && json_object_size(one) > 0 &&
            !json_object_get(one, "form") && json_object_get(one, "url"))
            continue;
        can |= abilities[i].can;
    }
    return can;
}

unsigned era_can_of(const char *capability) {
    for (size_t i = 0; i < NABILITIES; i++)
        if (strcmp(capability, abilities[i].capability) == 0)
            return abilities[i].can;
    return 0;
}

unsigned era_can_for(const char *method) {
    for (size_t i = 0; i < NABILITIES; i++)
        if (strcmp(method, abilities[i].method) == 0)
            return abilities[i].can;
    return 0;
}

const char *era_capability(unsigned one) {
    for (size_t i = 0; i < NABILITIES; i++)
        if (abilities[i].can == one)
            return abilities[i].capability;
    return "";
}
