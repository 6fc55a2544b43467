/* Any bytes as a .env file: names are names, values hold no more than the file did, and what is
 * wrong names a line that there is. */

#include "config/env_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void look(void *arg, const char *name, const char *value) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t *left = arg, len = strlen(name) + strlen(value);
    must(*name && strspn(name, letters) == strlen(name) && !(*name >= '0' && *name <= '9'));
    must(len < *left);
    *left -= len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    size_t left = size, lines = 1;
    unsigned at = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    if (env_file_parse("f", (const char *)data, size, look, &left, &e) < 0)
        must(sscanf(e.text, "f: line %u: ", &at) == 1 && at >= 1 && at <= lines);
    return 0;
}
