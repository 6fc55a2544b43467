/* main() of a fuzz target that is not built for libFuzzer: every argument is an input or a
 * directory of inputs, and each goes through the target once. */

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input lies in memory of exactly its size, so that a sanitizer sees one byte too many. */
static int replay_file(int dirfd, const char *name) {
    static char text[INPUT_MAX];
    struct err e;
    AUTO_FD fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    size_t len;
    if (fd < 0 || fd_read_all(fd, text, sizeof text, &len, &e) < 0) {
        fprintf(stderr, "cannot read %s\n", name);
        return 1;
    }
    AUTO_FREE uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        return 1;
    memcpy(exact, text, len);
    LLVMFuzzerTestOneInput(exact, len);
    return 0;
}

/* Returns how many inputs there were, or -1. */
static int replay(const char *path) {
    DIR *dir = opendir(path);
    if (!dir)
        return replay_file(AT_FDCWD, path) == 0 ? 1 : -1;
    int n = 0;
    struct dirent *entry;
    while (n >= 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            n = replay_file(dirfd(dir), entry->d_name) == 0 ? n + 1 : -1;
    closedir(dir);
    return n;
}

int main(int argc, char **argv) {
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n <= 0) {
            fprintf(stderr, "%s: %s\n", argv[i], n ? "failed" : "no inputs");
            return 1;
        }
        total += n;
    }
    printf("%d inputs replayed\n", total);
    return total ? 0 : 1;
}
