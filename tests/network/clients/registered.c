/* A page by libevent on a socket that is in its epoll before it connects: whoever puts another
 * socket in its place takes it out of there. */
#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct event_base *base;
static struct event *event;
static const char *host;
static bool connecting, asked;
static int status = 1;

static void on_event(evutil_socket_t fd, short what, void *arg) {
    char text[512];
    int errnum = 0;
    socklen_t len = sizeof errnum;
    (void)arg;
    if (!connecting)
        return; /* an unconnected socket hangs up at once */
    if (!asked && what & EV_WRITE) {
        int n = snprintf(text, sizeof text, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host);
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0 || errnum ||
            send(fd, text, (size_t)n, 0) != n) {
            fprintf(stderr, "connect: %s\n", strerror(errnum ? errnum : errno));
            event_base_loopbreak(base);
        }
        asked = true;
    }
    ssize_t got = recv(fd, text, sizeof text, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    status = got >= 12 && printf("%.12s\n", text) > 0 ? 0 : 1;
    event_base_loopbreak(base);
}

int main(int argc, char **argv) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *to = NULL;
    if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &to) != 0)
        return 2;
    host = argv[1];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    base = event_base_new();
    event = event_new(base, fd, EV_READ | EV_WRITE | EV_ET | EV_PERSIST, on_event, NULL);
    if (fd < 0 || event_add(event, NULL) < 0)
        return 3;
    event_base_loop(base, EVLOOP_NONBLOCK);
    connecting = true;
    if (connect(fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS) {
        perror("connect");
        return 4;
    }
    event_base_dispatch(base);
    return status;
}
