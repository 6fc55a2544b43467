#pragma once
/* The sockets of our network namespace, as the kernel's diagnosis of sockets lists them. */

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket. Its message is a struct unix_diag_msg or inet_diag_msg with attributes behind it. */
typedef void diag_fn(void *arg, const struct nlmsghdr *h);

/* `show`: UDIAG_SHOW_…. False: the kernel has no such list. */
bool diag_list_unix(uint32_t show, diag_fn *fn, void *arg);
/* Of TCP or UDP (IPPROTO_…), with INET_DIAG_SKMEMINFO. */
bool diag_list_inet(uint8_t protocol, diag_fn *fn, void *arg);

/* How many sockets of ours in the namespace it takes: they are in no list. */
unsigned diag_list_sockets(void);

/* An attribute's value, if it has `least` bytes; `head` is the size of what is before all of them.
 */
const void *diag_find(const struct nlmsghdr *h, size_t head, unsigned short type, size_t least);
/* Numbers by SK_MEMINFO_…, up to SK_MEMINFO_BACKLOG; NULL: it does not say. */
const uint32_t *diag_memory_unix(const struct nlmsghdr *h);
const uint32_t *diag_memory_inet(const struct nlmsghdr *h);
