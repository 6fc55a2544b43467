#pragma once
/* A WebSocket to a server: libcurl makes the connection (TLS, Unix sockets and proxies are its), we
 * shake hands, libwslay does the frames. Debian 12's libcurl has no WebSockets of its own. */

#include "remote/net/call.h"

struct wsclient;

struct wsclient_events {
    void *arg;
    void (*on_message)(void *arg, bool is_text, const char *data, size_t len);
};

/* 1: open; 0: the server answered otherwise, or a signal came: see reply. */
int wsclient_open(struct remote *r, const char *path, const struct wsclient_events *ev,
                  struct wsclient **ret, struct remote_reply *reply, struct err *e);
void wsclient_free(struct wsclient *w);

/* For poll: the socket, and whether something waits to be sent. */
int wsclient_fd(const struct wsclient *w);
bool wsclient_wants_write(const struct wsclient *w);
/* Bytes that were given to send and are not sent yet. */
size_t wsclient_queued(const struct wsclient *w);
void wsclient_send(struct wsclient *w, bool is_text, const char *data, size_t len);
/* Takes what has come and sends what waits, without blocking. 1: the other side has closed. */
int wsclient_pump(struct wsclient *w, struct err *e);
