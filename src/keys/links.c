/* See links.h. A link is EXPIRES.KEY.MAC: the time, the id of the key or "-", and HMAC-SHA256 over
 * these with the sandbox and the port, in base64url. SECURITY: compared in constant time. */

#include "keys/links.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NEXT     "secret.new"
#define MAC_TEXT 43 /* 32 bytes in base64url, without padding */
#define DIGITS   18

static bool read_secret(int state_dir, const char *name, struct link_secret *ret) {
    AUTO_FD fd = openat(state_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && read(fd, ret->bytes, sizeof ret->bytes) == (ssize_t)sizeof ret->bytes;
}

/* Whole before it has its name. */
int link_secret_open(int state_dir, const char *name, struct link_secret *ret, struct err *e) {
    if (read_secret(state_dir, name, ret))
        return 0;
    if (getrandom(ret->bytes, sizeof ret->bytes, 0) != (ssize_t)sizeof ret->bytes)
        return err_sys(e, "getrandom");
    AUTO_FD fd =
        openat(state_dir, NEXT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(e, "open %s", NEXT);
    if (fd_write_all(fd, ret->bytes, sizeof ret->bytes, e) < 0)
        return -1;
    return renameat(state_dir, NEXT, state_dir, name) < 0 ? err_sys(e, "rename %s", NEXT) : 0;
}

static void sign(const struct link_secret *s, const struct link_claim *c, char ret[MAC_TEXT + 2]) {
    struct hmac_sha256_ctx h;
    struct base64_encode_ctx encode;
    uint8_t mac[32];
    char text[200];
    int len = snprintf(text, sizeof text, "cloche link\n%.64s\n%u\n%llu\n%.23s", c->sandbox,
                       c->port, (unsigned long long)c->expires, c->key);
    hmac_sha256_set_key(&h, sizeof s->bytes, s->bytes);
    hmac_sha256_update(&h, (size_t)len, (const uint8_t *)text);
    hmac_sha256_digest(&h, sizeof mac, mac);
    base64url_encode_init(&encode);
    size_t n = base64_encode_update(&encode, ret, sizeof mac, mac);
    base64_encode_final(&encode, ret + n);
    ret[MAC_TEXT] = '\0';
}

void link_write(const struct link_secret *s, const struct link_claim *c, struct buf *to) {
    char mac[MAC_TEXT + 2];
    sign(s, c, mac);
    buf_addf(to, "%llu.%s.%s", (unsigned long long)c->expires, c->key[0] ? c->key : "-", mac);
}

/* The whole text is compared, not only the signature: a claim has one form. */
bool link_read(const struct link_secret *s, const char *text, size_t len, struct link_claim *c) {
    AUTO_BUF same = BUF_INIT;
    size_t digits = 0;
    c->expires = 0;
    while (digits < len && digits < DIGITS && text[digits] >= '0' && text[digits] <= '9')
        c->expires = c->expires * 10 + (uint64_t)(text[digits++] - '0');
    if (len < digits + MAC_TEXT + 3 || text[digits] != '.' || text[len - MAC_TEXT - 1] != '.')
        return false;
    size_t key = len - digits - MAC_TEXT - 2;
    if (key >= sizeof c->key)
        return false;
    memcpy(c->key, text + digits + 1, key);
    c->key[key] = '\0';
    if (strcmp(c->key, "-") == 0)
        c->key[0] = '\0';
    link_write(s, c, &same);
    return same.len == len && memeql_sec(same.data, text, len);
}
