#pragma once
/* Whom the server runs as when root starts it: the user `cloche`, else nobody. */

#include <sys/types.h>

struct service {
    uid_t uid;
    gid_t gid;
};

/* For anybody but root: who we are. Not for after a fork. */
struct service service_find(void);
