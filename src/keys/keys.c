/* See keys.h. */

#include "keys/keys.h"

#include "base/buf.h"
#include "base/clock.h"
#include "keys/key_value.h"

#include <nettle/base64.h>
#include <nettle/memops.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SECRET_PREFIX "clk_"
#define SECRET_BYTES  32

void key_done(struct key *k) {
    free(k->name);
    free(k->tenant);
    free(k->network);
    *k = (struct key){0};
}

void keys_done(struct keys *k) {
    for (unsigned i = 0; i < k->n; i++)
        key_done(&k->items[i]);
    free(k->items);
    *k = (struct keys){0};
}

int keys_add_take(struct keys *k, struct key *key, struct err *e) {
    if (k->n >= KEYS_MAX)
        return err_user(e, "too_many_keys", "there are %u keys, and more are not allowed", k->n);
    k->items = xrealloc(k->items, (k->n + 1) * sizeof *k->items);
    k->items[k->n++] = *key;
    *key = (struct key){0};
    return 0;
}

void keys_remove(struct keys *k, unsigned at) {
    key_done(&k->items[at]);
    memmove(&k->items[at], &k->items[at + 1], (k->n - at - 1) * sizeof *k->items);
    k->n--;
}

void keys_hash_init(struct sha256_ctx *h) {
    sha256_init(h);
}

void keys_hash_add(struct sha256_ctx *h, const void *data, size_t len) {
    sha256_update(h, len, data);
}

void keys_hash_end(struct sha256_ctx *h, uint8_t ret[32]) {
    sha256_digest(h, 32, ret);
}

void keys_sha256(const void *data, size_t len, uint8_t ret[32]) {
    struct sha256_ctx ctx;
    keys_hash_init(&ctx);
    keys_hash_add(&ctx, data, len);
    keys_hash_end(&ctx, ret);
}

bool keys_is_secret(const char *text) {
    return strncmp(text, SECRET_PREFIX, sizeof SECRET_PREFIX - 1) == 0;
}

const struct key *keys_find(const struct keys *k, const char *secret, size_t len) {
    uint8_t sent[32];
    keys_sha256(secret, len, sent);
    /* SECURITY: no branch on the outcome either; `found` counts from 1. */
    size_t found = 0;
    for (size_t i = 0; i < k->n; i++) {
        size_t equal = (size_t)memeql_sec(sent, k->items[i].sha256, sizeof sent);
        size_t mask = (size_t)0 - equal;
        found = (found & ~mask) | ((i + 1) & mask);
    }
    return found ? &k->items[found - 1] : NULL;
}

static int check_new(const char *name, const char *tenant, const struct key_limits *l,
                     struct err *e) {
    static const char kind[] = "bad_value";
    if (key_check_word(kind, "name", name, e) < 0 || key_check_word(kind, "tenant", tenant, e) < 0)
        return -1;
    if (l->requests_per_second != 0 &&
        key_check_limit(kind, "requests_per_second", l->requests_per_second, KEYS_RATE_MIN, e) < 0)
        return -1;
    if (l->concurrent && key_check_limit(kind, "concurrent", l->concurrent, 1, e) < 0)
        return -1;
    if (l->cpu_seconds_per_minute &&
        key_check_limit(kind, "cpu_seconds_per_minute", l->cpu_seconds_per_minute, 1, e) < 0)
        return -1;
    return l->sandboxes ? key_check_limit(kind, "sandboxes", l->sandboxes, 1, e) : 0;
}

static int make_secret(char secret[KEYS_SECRET_SIZE], uint8_t id[KEY_ID_BYTES], struct err *e) {
    uint8_t bits[SECRET_BYTES + KEY_ID_BYTES];
    /* As few bytes as these come in one piece, and no signal interrupts them. */
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return err_sys(e, "getrandom");
    memcpy(id, bits + SECRET_BYTES, KEY_ID_BYTES);
    size_t at = strlen(SECRET_PREFIX);
    memcpy(secret, SECRET_PREFIX, at + 1);
    struct base64_encode_ctx ctx;
    base64url_encode_init(&ctx);
    at += base64_encode_update(&ctx, secret + at, SECRET_BYTES, bits);
    at += base64_encode_final(&ctx, secret + at);
    explicit_bzero(bits, sizeof bits);
    secret[at] = '\0';
    char *padding = strchr(secret, '=');
    if (padding)
        *padding = '\0';
    return 0;
}

int key_make(const char *name, const char *tenant, const struct key_limits *limits, struct key *ret,
             char secret[KEYS_SECRET_SIZE], struct err *e) {
    static const struct key_limits none = {0};
    const struct key_limits *l = limits ? limits : &none;
    const char *of = tenant ? tenant : name;
    if (check_new(name, of, l, e) < 0)
        return -1;
    uint64_t created_ms = ns_to_ms(clock_ns(CLOCK_REALTIME));
    struct key k = {.created = (double)created_ms / 1e3, .limits = *l};
    uint8_t id[KEY_ID_BYTES];
    if (make_secret(secret, id, e) < 0)
        return -1;
    keys_sha256(secret, strlen(secret), k.sha256);
    memcpy(k.id, KEY_ID_PREFIX, sizeof KEY_ID_PREFIX);
    key_hex_write(id, sizeof id, k.id + strlen(KEY_ID_PREFIX));
    k.name = xstrdup(name);
    k.tenant = xstrdup(of);
    *ret = k;
    return 0;
}
