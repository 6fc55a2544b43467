#pragma once
/* WebSocket (RFC 6455) on our loop: libmicrohttpd reads the handshake and hands the socket over,
 * libwslay reads and writes the frames.
 *
 * A WebSocket belongs to its request and lives until on_finished was called for that: on_closed
 * comes before it, exactly once, and nothing after on_closed. Every function may be called from any
 * callback. Pings are sent and answered here; a peer that is silent for too long is closed.
 *
 * Nothing here waits for anybody: what the peer does not read costs one bounded buffer (a peer with
 * more than reply_max is given up), less if the owner heeds ws_backlog, and what the owner cannot
 * take stays in the peer's socket (ws_hold). */

#include "http/http.h"

#define WS_MESSAGE_MAX (1u << 20) /* bytes; a larger one closes with WS_TOO_BIG */

enum ws_code {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_UNSUPPORTED = 1003,
    WS_POLICY = 1008,
    WS_TOO_BIG = 1009,
    WS_INTERNAL = 1011,
    WS_TRY_LATER = 1013,
};

struct ws;
struct ws_options {
    void *arg;
    uint64_t owner;     /* of crew_owner(): owners take turns, however many connections each has */
    size_t message_max; /* bytes; 0: WS_MESSAGE_MAX */
    void (*on_text)(void *arg, const char *text, size_t len); /* UTF-8 */
    void (*on_binary)(void *arg, const void *data, size_t len);
    void (*on_drain)(void *arg); /* the backlog has fallen below HTTP_LOW_WATER again; or NULL */
    /* How long it took to read and answer what came last; or NULL. */
    void (*on_cost)(void *arg, uint64_t cpu_ns);
    void (*on_closed)(void *arg);
};

void ws_send_text(struct ws *w, const char *text, size_t len);
void ws_send_binary(struct ws *w, const void *data, size_t len);
void ws_send_blob(struct ws *w, bool binary, struct blob *of); /* shared, not copied */
/* Closes once all is sent; on_text and on_binary come no more. `reason`: up to 123 bytes. */
void ws_close(struct ws *w, enum ws_code code, const char *reason);
/* The same, but drops what waits for a peer that does not read. */
void ws_give_up(struct ws *w, enum ws_code code, const char *reason);
bool ws_is_closing(const struct ws *w); /* or was given up, for not reading */
/* Bytes that wait for the peer; above HTTP_HIGH_WATER, send no more until on_drain. */
size_t ws_backlog(const struct ws *w);
/* Stops or resumes reading from the peer. A little that was read already still comes. */
void ws_hold(struct ws *w, bool hold);
/* In on_text and on_binary: what the message counts for, as a body does. */
struct http_count ws_move_count(struct ws *w);
