#pragma once
/* Texts that a client brings back and that nobody else could have written: HMAC-SHA256 over what
 * they claim. A server that was restarted knows them again, and keeps no table. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_SECRET 32
#define TOKEN_MAC    43 /* characters of a MAC: base64url without padding */
#define TOKEN_MAX    200

/* `use` keeps tokens for one thing from being taken for another; the claim has no newline. */
void token_mac(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
               const char *claim, char ret[TOKEN_MAC + 2]);
/* SECURITY: in constant time. */
bool token_mac_is(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                  const char *claim, const char *mac);
/* CLAIM.MAC, and the claim of such a text; `cap` is TOKEN_MAX at least. */
void token_write(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                 const char *claim, char *ret, size_t cap);
bool token_read(const uint8_t secret[TOKEN_SECRET], const char *use, const char *owner,
                const char *text, char *ret_claim, size_t cap);
/* In hexadecimal: what stands for these bytes. */
#define TOKEN_DIGEST 64
void token_digest(const void *data, size_t len, char ret[TOKEN_DIGEST + 1]);
