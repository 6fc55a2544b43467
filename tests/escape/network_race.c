/* Uploaded by test_network_hostile.py as a static binary: a thread exchanges what connect() was
 * asked for while it is being judged. network_race MODE ROUNDS ALLOWED FORBIDDEN PORT; prints how
 * often each errno came, and LEAKED for a socket that talks with the forbidden address.
 *
 *   address     the address, between one that is allowed and one that is not
 *   loopback    the address, between the sandbox's own loopback and one that is not allowed
 *   family      the same address as AF_UNIX, AF_UNSPEC and AF_INET
 *   descriptor  the descriptor, between a socket that is connected and a fresh one
 *   datagram    the descriptor, between UDP and TCP: a UDP connect is let go on
 *   unix        the descriptor and the address, between AF_UNIX and AF_INET */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { VICTIM = 100, ERRNOS = 134 };

static union target {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_un un;
} * at;
static struct sockaddr_in allowed, forbidden, own;
static atomic_int is_over, one_fd = -1, other_fd = -1;
static char mode;
static unsigned counts[ERRNOS];

static struct sockaddr_in address(const char *text, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};
    inet_pton(AF_INET, text, &a.sin_addr);
    return a;
}

/* What was written before is there for others to see: the compiler may not leave it out. */
static void breathe(void) {
    __asm__ volatile("" ::: "memory");
    for (volatile int i = 0; i < 300; i++)
        ;
    __asm__ volatile("" ::: "memory");
}

static void flip_address(const struct sockaddr_in *first) {
    at->in = *first;
    breathe();
    at->in = forbidden;
    breathe();
}

static void flip_family(void) {
    static const sa_family_t families[] = {AF_UNIX, AF_INET, AF_UNSPEC, AF_INET, AF_INET6};
    for (unsigned i = 0; i < sizeof families / sizeof *families; i++) {
        at->any.sa_family = families[i];
        breathe();
    }
}

static void flip_descriptor(void) {
    dup2(one_fd, VICTIM);
    breathe();
    dup2(other_fd, VICTIM);
    breathe();
}

static void *flip(void *nothing) {
    (void)nothing;
    while (!is_over) {
        switch (mode) {
        case 'a':
            flip_address(&allowed);
            break;
        case 'l':
            flip_address(&own);
            break;
        case 'f':
            flip_family();
            break;
        case 'd':
        case 't':
            flip_descriptor();
            break;
        case 'u':
            at->any.sa_family = AF_UNIX;
            flip_descriptor();
            at->in = forbidden;
            flip_descriptor();
            break;
        default:
            breathe();
        }
    }
    return NULL;
}

/* Whether the other end is the forbidden server: it answers a request. */
static int talks(int fd) {
    struct pollfd p = {fd, POLLOUT, 0};
    char reply[8];
    if (poll(&p, 1, 20) != 1 || send(fd, "HEAD / HTTP/1.0\r\n\r\n", 19, MSG_NOSIGNAL) != 19)
        return 0;
    p.events = POLLIN;
    return poll(&p, 1, 200) == 1 && recv(fd, reply, 4, MSG_DONTWAIT) == 4 &&
           memcmp(reply, "HTTP", 4) == 0;
}

static int is_at(int fd, const struct sockaddr_in *a) {
    struct sockaddr_in peer = {0};
    socklen_t len = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
           peer.sin_addr.s_addr == a->sin_addr.s_addr;
}

static int stream(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

/* A round: connects, counts, looks where it led. */
static void round_of(int fd, socklen_t len) {
    int done = connect(fd, &at->any, len);
    counts[done == 0 ? 0 : errno < ERRNOS ? errno : ERRNOS - 1]++;
    if (done < 0 && errno == EADDRNOTAVAIL)
        usleep(2000); /* what was begun and never sent is forgotten by and by */
    if (is_at(fd, &forbidden) && talks(fd)) {
        puts("LEAKED");
        exit(1);
    }
}

static void prepare(void) {
    if (mode == 'd') { /* one that is connected and one that is not */
        one_fd = stream();
        connect(one_fd, (struct sockaddr *)&allowed, sizeof allowed);
        struct pollfd p = {one_fd, POLLOUT, 0};
        poll(&p, 1, 2000);
    } else if (mode == 't') {
        one_fd = socket(AF_INET, SOCK_DGRAM, 0);
    } else if (mode == 'u') {
        one_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    }
    other_fd = stream();
    dup2(other_fd, VICTIM);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    mode = strcmp(argv[1], "datagram") == 0 ? 't' : argv[1][0];
    allowed = address(argv[3], 7);
    forbidden = address(argv[4], atoi(argv[5]));
    own = address("127.0.0.1", 1);
    at = calloc(1, sizeof *at);
    at->in = mode == 'a' ? allowed : forbidden;
    prepare();
    pthread_t thread;
    pthread_create(&thread, NULL, flip, NULL);
    for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
        if (mode == 'd' || mode == 't' || mode == 'u') {
            if (rounds % 16 == 0) { /* a fresh one: the last may be connected, inside */
                int fresh = stream(), old = other_fd;
                other_fd = fresh;
                close(old);
            }
            if (mode != 'u')
                at->in = forbidden;
            round_of(VICTIM, sizeof at->in);
        } else {
            int fd = stream();
            round_of(fd, sizeof at->in);
            close(fd);
        }
    }
    is_over = 1;
    pthread_join(thread, NULL);
    printf("held:");
    for (int i = 0; i < ERRNOS; i++)
        if (counts[i] > 0)
            printf(" %s=%u", i == 0 ? "ok" : strerrorname_np(i), counts[i]);
    puts("");
    return 0;
}
