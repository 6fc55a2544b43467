/* The handshake of a WebSocket: RFC 6455, section 4.2. */

#include "http/ws_handshake.h"

#include "base/base64.h"
#include "http/chars.h"
#include "http/http_reply.h"
#include "http/ws_internal.h"

#include <nettle/sha1.h>
#include <string.h>
#include <strings.h>

#define KEY_BYTES 16
#define GUID      "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define VERSION   "13"

/* A key is what an encoder makes of 16 bytes: nothing beside, no bits left over. */
static bool is_key(const char *key) {
    AUTO_BUF bytes = BUF_INIT, again = BUF_INIT;
    if (!key || !base64_decode(&bytes, key, strlen(key)) || bytes.len != KEY_BYTES)
        return false;
    base64_encode(&again, bytes.data, bytes.len);
    return strcmp(again.data, key) == 0;
}

const char *ws_wrong(struct http_req *r, int *ret_status) {
    const char *version = http_header(r, "Sec-WebSocket-Version");
    *ret_status = 426;
    if (!char_lists(http_header(r, "Upgrade"), "websocket")) {
        http_add_header(r, "Upgrade", "websocket");
        return "this path takes a WebSocket with GET: the header \"Upgrade: websocket\" is missing";
    }
    *ret_status = 400;
    if (strcmp(r->method, "GET") != 0 || r->is_1_0)
        return "a WebSocket begins with GET and HTTP/1.1";
    if (!char_lists(http_header(r, "Connection"), "upgrade"))
        return "the header \"Connection: Upgrade\" is missing";
    if (http_header(r, "Transfer-Encoding") || http_body_length(r) > 0)
        return "the request for a WebSocket has no body";
    if (!version || strcmp(version, VERSION) != 0) {
        *ret_status = 426;
        http_add_header(r, "Upgrade", "websocket");
        http_add_header(r, "Sec-WebSocket-Version", VERSION);
        return "Sec-WebSocket-Version is not 13, the only one there is";
    }
    if (!is_key(http_header(r, "Sec-WebSocket-Key")))
        return "Sec-WebSocket-Key is not 16 bytes in base64";
    return NULL;
}

static void accept_of(const char *key, struct buf *to) {
    struct sha1_ctx ctx;
    uint8_t digest[SHA1_DIGEST_SIZE];
    sha1_init(&ctx);
    sha1_update(&ctx, strlen(key), (const uint8_t *)key);
    sha1_update(&ctx, sizeof GUID - 1, (const uint8_t *)GUID);
    sha1_digest(&ctx, sizeof digest, digest);
    base64_encode(to, digest, sizeof digest);
}

struct ws *ws_accept(struct http_req *r, const struct ws_options *o) {
    AUTO_BUF accepted = BUF_INIT;
    accept_of(http_header(r, "Sec-WebSocket-Key"), &accepted);
    http_add_header(r, "Upgrade", "websocket");
    http_add_header(r, "Sec-WebSocket-Accept", accepted.data);
    struct ws *w = ws_new(r, o);
    if (http_switch(r, w, ws_upgraded)) {
        r->ws = w;
        return w;
    }
    ws_free(w);
    return NULL;
}
