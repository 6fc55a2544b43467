/* Any bytes as init's records of files: what is taken must be strings that end inside of them. */

#include "wire/entry.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    struct entry f;
    while (entry_get(&at, end, &f)) {
        if (at > end || f.type >= ENTRY_TYPES_ || strlen(f.path) > ENTRY_PATH_MAX ||
            strlen(f.target) > ENTRY_PATH_MAX || f.target + strlen(f.target) >= (const char *)end)
            abort();
    }
    return 0;
}
