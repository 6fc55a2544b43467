#pragma once
/* API keys of the HTTP service: a list, kept in one JSON file (keys_file.h), which `cloche key`
 * writes and the server reads.
 *
 * A key is "clk_" and 32 random bytes in base64url. That much chance cannot be guessed, so one
 * SHA-256 without salt is enough, and it is all that is kept: the secret is shown once, when the
 * key is made. */

#include "base/buf.h"
#include "base/err.h"

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYS_MAX         10000u
#define KEYS_FILE_MAX    (8u << 20)
#define KEYS_WORD_MAX    64       /* bytes of a name or a tenant */
#define KEYS_LIMIT_MAX   1000000u /* of each of the limits */
#define KEYS_RATE_MIN    0.001    /* requests per second */
#define KEYS_SECRET_SIZE 64
#define KEYS_NETWORK_MAX 4096u /* bytes of rules */

struct key_limits {
    double requests_per_second; /* 0: none, as for the others */
    uint32_t concurrent, cpu_seconds_per_minute;
    uint32_t sandboxes; /* live ones of its tenant */
};

/* What a key may do beside running programs: a bit each, in the order of the names. */
enum key_right { KEY_PROFILES = 1 };
#define KEY_RIGHTS_ALL KEY_PROFILES
extern const char *const key_rights[]; /* NULL-terminated */
/* Adds the right of that name. -1 with an error of that kind. */
int key_read_right(const char *kind, const char *text, uint32_t *to, struct err *e);

struct key {
    char id[24];
    char *name, *tenant; /* owned */
    uint8_t sha256[32];
    double created; /* seconds since 1970 */
    struct key_limits limits;
    char *network;   /* owned: rules, the most that it grants; or NULL: all that the server does */
    uint32_t rights; /* of enum key_right */
};

struct keys {
    struct key *items; /* owned */
    unsigned n;
};
#define AUTO_KEYS __attribute__((cleanup(keys_done))) struct keys
#define AUTO_KEY  __attribute__((cleanup(key_done))) struct key

void keys_done(struct keys *k);
void key_done(struct key *k);

void keys_sha256(const void *data, size_t len, uint8_t ret[32]);
/* The same piece by piece. */
void keys_hash_init(struct sha256_ctx *h);
void keys_hash_add(struct sha256_ctx *h, const void *data, size_t len);
void keys_hash_end(struct sha256_ctx *h, uint8_t ret[32]);

/* SECURITY: constant time: hashes what was sent and compares it with every key, without an early
 * exit. NULL when there is none. */
const struct key *keys_find(const struct keys *k, const char *secret, size_t len);

/* Whether it has the form of one, whether or not it is known. */
bool keys_is_secret(const char *text);

/* A new key and its secret, which is kept nowhere else. tenant may be NULL (the name is taken), and
 * so may limits (none). */
int key_make(const char *name, const char *tenant, const struct key_limits *limits, struct key *ret,
             char secret[KEYS_SECRET_SIZE], struct err *e);
/* Moves *key to the end of the list; it is left empty. Fails when the list is full. */
int keys_add_take(struct keys *k, struct key *key, struct err *e);
void keys_remove(struct keys *k, unsigned at);
