#pragma once
/* API keys of the HTTP service: one JSON file, written by `cloche key`, read by the server.
 *
 * A key is "clk_" and 32 random bytes in base64url. That much chance cannot be guessed, so one
 * SHA-256 without salt is enough, and it is all that is kept: the secret is shown once, when the
 * key is made. Who changes the file holds keys_lock from before reading it until it is written. */

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

struct key_limits {
    double requests_per_second; /* 0: none, as for the others */
    uint32_t concurrent, cpu_seconds_per_minute;
    uint32_t sandboxes; /* live ones of its tenant */
};

struct key {
    char id[24];
    char *name, *tenant; /* owned */
    uint8_t sha256[32];
    double created; /* seconds since 1970 */
    struct key_limits limits;
};

struct keys {
    struct key *items; /* owned */
    unsigned n;
};
#define AUTO_KEYS __attribute__((cleanup(keys_done))) struct keys
#define AUTO_KEY  __attribute__((cleanup(key_done))) struct key

/* A missing file is an empty list with *ret_there false. Strict: unknown members, wrong types, bad
 * hex, doubled ids or hashes and odd characters in names are errors of kind "bad_keys" that say
 * which key and which member. A limit of 0 is refused too: it could be meant as "nothing at all".
 */
int keys_read(int dir_fd, const char *name, struct keys *ret, bool *ret_there, struct err *e);
int keys_parse(const char *text, size_t len, struct keys *ret, struct err *e);
/* What keys_parse reads. */
void keys_encode(const struct keys *k, struct buf *to);
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

/* A new key and its secret, which is kept nowhere else. tenant may be NULL (the name is taken), and
 * so may limits (none). */
int key_make(const char *name, const char *tenant, const struct key_limits *limits, struct key *ret,
             char secret[KEYS_SECRET_SIZE], struct err *e);
/* Moves *key to the end of the list; it is left empty. Fails when the list is full. */
int keys_add_take(struct keys *k, struct key *key, struct err *e);
void keys_remove(struct keys *k, unsigned at);

/* Waits until nobody else changes the file; closing *ret_fd lets the next one go on. */
int keys_lock(int dir_fd, const char *name, int *ret_fd, struct err *e);
/* Under keys_lock: writes another file and renames it, so that a reader finds the old list or the
 * new one. Mode 0640, with the owner and group of the file that it replaces; a new file of root's
 * gets the group of the user cloche, as whom the server runs. */
int keys_write(int dir_fd, const char *name, const struct keys *k, struct err *e);
