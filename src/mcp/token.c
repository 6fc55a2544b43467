/* See token.h. */

#include "mcp/token.h"

#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

static void mac_add(struct hmac_sha256_ctx *h, const char *text) {
    hmac_sha256_update(h, strlen(text), (const uint8_t *)text);
    hmac_sha256_update(h, 1, (const uint8_t *)"\n");
}

void token_mac(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
               const char *claim, char ret[TOKEN_MAC + 2]) {
    struct hmac_sha256_ctx h;
    struct base64_encode_ctx encode;
    uint8_t mac[SHA256_DIGEST_SIZE];
    hmac_sha256_set_key(&h, TOKEN_SECRET, secret);
    mac_add(&h, "cloche mcp");
    mac_add(&h, use);
    mac_add(&h, owner);
    mac_add(&h, claim);
    hmac_sha256_digest(&h, sizeof mac, mac);
    base64url_encode_init(&encode);
    size_t n = base64_encode_update(&encode, ret, sizeof mac, mac);
    base64_encode_final(&encode, ret + n);
    ret[TOKEN_MAC] = '\0';
}

bool token_mac_is(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                  const char *claim, const char *mac) {
    char right[TOKEN_MAC + 2];
    token_mac(secret, use, owner, claim, right);
    return strlen(mac) == TOKEN_MAC && nettle_memeql_sec(right, mac, TOKEN_MAC);
}

void token_write(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                 const char *claim, char *ret, size_t cap) {
    char mac[TOKEN_MAC + 2];
    token_mac(secret, use, owner, claim, mac);
    snprintf(ret, cap, "%s.%s", claim, mac);
}

bool token_read(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                const char *text, char *ret_claim, size_t cap) {
    const char *dot = strrchr(text, '.');
    size_t n = dot ? (size_t)(dot - text) : 0;
    if (n == 0 || n >= cap || memchr(text, '\n', n))
        return false;
    memcpy(ret_claim, text, n);
    ret_claim[n] = '\0';
    return token_mac_is(secret, use, owner, ret_claim, dot + 1);
}

void token_digest(const void *data, size_t len, char ret[TOKEN_DIGEST + 1]) {
    struct sha256_ctx h;
    uint8_t sum[SHA256_DIGEST_SIZE];
    sha256_init(&h);
    sha256_update(&h, len, data);
    sha256_digest(&h, sizeof sum, sum);
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}
