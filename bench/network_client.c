/* The client of bench/network: the same static program for every contender.
 *
 *   network_client connect ADDRESS N US  us of each connect, closed with a reset; US between two
 *   network_client serve ADDRESS PORT    takes them, now and then: nobody wakes for one
 *   network_client trip ADDRESS N        us of each round trip of 64 bytes
 *   network_client down|up ADDRESS MB    seconds for so much
 *   network_client hold ADDRESS N PER_S  opens N connections, prints "held", ends with stdin
 *
 * Ports: 7 echoes, 9 takes, 19 gives (tests/network/internet.py); 20 is that of `serve`. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int connected(const char *address, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1 || fd < 0 ||
        connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void reset(int fd) {
    struct linger at_once = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static void connects(const char *address, int n, int pause_us) {
    for (int i = 0; i < n; i++) {
        double began = now_us();
        int fd = connected(address, 20);
        printf("%.1f\n", now_us() - began);
        reset(fd);
        if (pause_us)
            usleep((useconds_t)pause_us);
    }
}

static void serve(const char *address, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4096) < 0) {
        perror("serve");
        exit(1);
    }
    puts("served");
    fflush(stdout);
    for (;; usleep(50000)) {
        for (int one_more; (one_more = accept(fd, NULL, NULL)) >= 0;)
            close(one_more);
    }
}

static void trips(const char *address, int n) {
    int one = 1, fd = connected(address, 7);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = 0; i < n; i++) {
        double began = now_us();
        if (write(fd, block, 64) != 64 || recv(fd, block, 64, MSG_WAITALL) != 64)
            exit(1);
        printf("%.1f\n", now_us() - began);
    }
    reset(fd);
}

static void stream(const char *address, int down, long mb) {
    int fd = connected(address, down ? 19 : 9);
    double began = now_us();
    for (long left = mb << 20; left > 0;) {
        ssize_t n = down ? read(fd, block, sizeof block) : write(fd, block, sizeof block);
        if (n <= 0)
            exit(1);
        left -= n;
    }
    printf("%.6f\n", (now_us() - began) / 1e6);
    reset(fd);
}

static void hold(const char *address, int n, int per_s) {
    for (int i = 0; i < n; i++) {
        connected(address, 7);
        usleep((useconds_t)(1000000 / per_s));
    }
    puts("held");
    fflush(stdout);
    while (getchar() != EOF)
        ;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    int n = atoi(argv[3]);
    if (strcmp(argv[1], "connect") == 0)
        connects(argv[2], n, argc > 4 ? atoi(argv[4]) : 0);
    else if (strcmp(argv[1], "serve") == 0)
        serve(argv[2], n);
    else if (strcmp(argv[1], "trip") == 0)
        trips(argv[2], n);
    else if (strcmp(argv[1], "hold") == 0)
        hold(argv[2], n, argc > 4 ? atoi(argv[4]) : 20);
    else
        stream(argv[2], argv[1][0] == 'd', n);
    return 0;
}
