/* See who.h. Who has a socket open stands in nobody's list but the tables of descriptors;
 * what is looked at of these is bounded. */

#include "init/network/who.h"

#include "sandbox/egress/diag.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOKS 2048 /* descriptors, of all processes */

struct question {
    struct nlmsghdr h;
    struct inet_diag_req_v2 q;
};

/* 0: there is none. */
static uint32_t inode_of(int diag, int family, uint16_t port) {
    _Alignas(struct nlmsghdr) char reply[8192];
    struct question m = {.h = {.nlmsg_len = sizeof m,
                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                         .q = {.sdiag_family = (uint8_t)family,
                               .sdiag_protocol = IPPROTO_UDP,
                               .idiag_states = UINT32_MAX}};
    m.q.id.idiag_sport = htons(port);
    diag_drain(diag);
    if (send(diag, &m, sizeof m, 0) < 0)
        return 0;
    ssize_t n = recv(diag, reply, sizeof reply, MSG_DONTWAIT);
    const struct nlmsghdr *h = (const void *)reply;
    uint32_t inode = 0;
    if (n >= NLMSG_LENGTH((int)sizeof(struct inet_diag_msg)) &&
        h->nlmsg_type == SOCK_DIAG_BY_FAMILY)
        inode = ((const struct inet_diag_msg *)NLMSG_DATA(h))->idiag_inode;
    diag_drain(diag);
    return inode;
}

static bool is_socket(int dir, const char *name, uint32_t inode) {
    char what[32], target[64];
    snprintf(what, sizeof what, "socket:[%u]", inode);
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    return strcmp(target, what) == 0;
}

static bool has_open(pid_t pid, uint32_t inode, unsigned *looks, int *ret_fd) {
    char path[32];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *ent; d && !found && *looks > 0 && (ent = readdir(d)); (*looks)--) {
        found = is_socket(dirfd(d), ent->d_name, inode);
        *ret_fd = atoi(ent->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

static struct who search_all(uint32_t inode) {
    unsigned looks = LOOKS;
    struct who found = {0, -1};
    DIR *d = opendir("/proc");
    for (struct dirent *ent; d && !found.pid && looks > 0 && (ent = readdir(d));) {
        pid_t pid = (pid_t)strtol(ent->d_name, NULL, 10); /* 0: it is no process */
        if (pid > 1 && has_open(pid, inode, &looks, &found.fd))
            found.pid = pid;
    }
    if (d)
        closedir(d);
    return found;
}

struct who who_asks(int diag, int family, uint16_t port, struct who guess, bool search) {
    const struct who none = {0, -1};
    char path[48];
    uint32_t inode = inode_of(diag, family, port);
    if (!inode)
        return none;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)guess.pid, guess.fd);
    if (guess.pid && is_socket(AT_FDCWD, path, inode))
        return guess;
    return search ? search_all(inode) : none;
}
