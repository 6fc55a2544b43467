#pragma once
/* What is known of the engine as a whole, beside its pools: since when it runs, what the machine
 * gives, what had to be started again. */

#include "base/json.h"
#include "base/schema.h"
#include "config/config.h"
#include "wire/codec.h"

#define ABOUT_MAX_LAYERS 32

struct engine;

struct engine_about {
    uint64_t started_ns; /* of the monotonic clock */
    double started;      /* unix time */
    unsigned nlayers;
    struct engine_layer {
        char name[24], how[160];
        uint32_t state; /* enum probe_state of the warden's: ok, weak, missing */
    } layers[ABOUT_MAX_LAYERS];
    struct engine_restarts {
        uint32_t server, nurseries, zygotes, gate; /* since the warden started */
    } restarts;
};

void about_init(struct engine_about *a);
/* W_LAYER and W_RESTARTS. */
void about_layer(struct engine_about *a, struct wire_in *in);
void about_restarts(struct engine_about *a, struct wire_in *in);

/* Keys and values into an object that is open. */
void about_put(struct jw *j, const struct engine *g);
/* A list of {layer, state, detail}. */
extern const struct schema about_layer_schema;
void about_put_isolation(struct jw *j, const struct engine *g);
/* `live` and `live_what` of a named profile: whether it has live sandboxes, and else why not. */
/* The two as members of a table. */
#define ABOUT_LIVE_FIELDS                                                                          \
    HAS("live", FIELD_STRING, WORDS("starting", "ready", "broken", "off")),                        \
        HAS_OR_NULL("live_what", FIELD_STRING, .help = "why it is broken")
void about_put_live(struct jw *j, const struct engine *g, unsigned profile);
/* The limits, by the names that they have in requests, below this key. */
/* All of them, and those of a kernel. */
extern const struct schema about_limits_schema, about_kernel_limits_schema;
void about_put_limits(struct jw *j, const char *key, const struct limits *l, unsigned scopes);
/* Of this process. */
uint64_t about_resident_bytes(void);
/* State for people and machines: all of that, and each profile. */
extern const struct schema about_schema;
void about_json(const struct engine *g, struct buf *to);
