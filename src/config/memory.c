/* See memory.h. A control group counts with its own limit and with those above it, as far up as
 * they can be seen; in a container the path that /proc tells may not be there, but the top of what
 * is mounted is then the container's own group. */

#include "config/memory.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct place {
    const char *line, *mount, *file; /* `line`: what stands before the path in /proc/self/cgroup */
} places[] = {
    {"0::", "/sys/fs/cgroup", "memory.max"},
    {"0::", "/sys/fs/cgroup/unified", "memory.max"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
};

static bool read_text(const char *root, const char *path, char *to, size_t cap) {
    AUTO_BUF name = BUF_INIT;
    struct err e;
    buf_addf(&name, "%s%s", root, path);
    return file_read_at(AT_FDCWD, name.data, to, cap, &e) == 0;
}

/* "max" is no number, and v1 says "none" with one that no machine has. */
static uint64_t limit_at(const char *root, const char *dir, const char *file) {
    AUTO_BUF path = BUF_INIT;
    char text[64];
    buf_addf(&path, "%s/%s", dir, file);
    if (!read_text(root, path.data, text, sizeof text))
        return UINT64_MAX;
    uint64_t v = strtoull(text, NULL, 10);
    return v && v < 1ull << 60 ? v : UINT64_MAX;
}

static uint64_t limit_of_groups(const char *root, const struct place *p, const char *groups) {
    const char *at = strstr(groups, p->line);
    if (!at)
        return UINT64_MAX;
    at += strlen(p->line);
    AUTO_BUF dir = BUF_INIT;
    buf_addf(&dir, "%s%.*s", p->mount, (int)strcspn(at, "\n"), at);
    uint64_t least = UINT64_MAX;
    for (size_t top = strlen(p->mount);;) {
        uint64_t v = limit_at(root, dir.data, p->file);
        least = v < least ? v : least;
        char *slash = strrchr(dir.data, '/');
        if (!slash || (size_t)(slash - dir.data) < top)
            return least;
        *slash = '\0';
    }
}

uint64_t memory_of_machine(const char *root) {
    char text[8192];
    uint64_t least = UINT64_MAX;
    const char *total =
        read_text(root, "/proc/meminfo", text, sizeof text) ? strstr(text, "MemTotal:") : NULL;
    if (total)
        least = strtoull(total + strlen("MemTotal:"), NULL, 10) << 10;
    if (read_text(root, "/proc/self/cgroup", text, sizeof text)) {
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            uint64_t v = limit_of_groups(root, &places[i], text);
            least = v < least ? v : least;
        }
    }
    return least == UINT64_MAX ? 0 : least;
}

char *memory_default_budget(void) {
    struct buf b = BUF_INIT;
    buf_addf(&b, "%llu", (unsigned long long)(memory_of_machine("") / 4 * 3 >> 20));
    return buf_take(&b);
}
