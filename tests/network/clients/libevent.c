/* A page by libevent: its own resolver, and its own connect. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct event_base *base;
static int status = 1;

static void on_bytes(struct bufferevent *b, void *arg) {
    char text[13] = "";
    (void)arg;
    if (evbuffer_get_length(bufferevent_get_input(b)) < 12)
        return;
    evbuffer_remove(bufferevent_get_input(b), text, 12);
    printf("%s\n", text);
    status = 0;
    event_base_loopbreak(base);
}

static void on_event(struct bufferevent *b, short what, void *arg) {
    if (what & BEV_EVENT_CONNECTED) {
        evbuffer_add_printf(bufferevent_get_output(b), "GET / HTTP/1.0\r\nHost: %s\r\n\r\n",
                            (const char *)arg);
        return;
    }
    fprintf(stderr, "event %x: %s\n", (unsigned)what,
            evutil_gai_strerror(bufferevent_socket_get_dns_error(b)));
    event_base_loopbreak(base);
}

int main(int argc, char **argv) {
    base = event_base_new();
    struct evdns_base *names = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
    struct bufferevent *b = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (argc != 3 || !names || !b)
        return 2;
    bufferevent_setcb(b, on_bytes, NULL, on_event, argv[1]);
    bufferevent_enable(b, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect_hostname(b, names, AF_UNSPEC, argv[1], atoi(argv[2])) < 0)
        return 3;
    event_base_dispatch(base);
    return status;
}
