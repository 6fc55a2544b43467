/* A page by getaddrinfo: for a static program of any libc. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char text[512];
    if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &found) != 0)
        return 2;
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)
            continue;
        int len = snprintf(text, sizeof text, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
        if (write(fd, text, (size_t)len) == len && read(fd, text, sizeof text) >= 12)
            return printf("%.12s\n", text) < 0;
    }
    return 1;
}
