/* Any bytes as a line of requirements: what is let through is one line of plain characters, and
 * begins with a name. */

#include "api/profiles/requirement.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *line = malloc(size ? size : 1); /* without a NUL behind it */
    must(line != NULL);
    if (size)
        memcpy(line, data, size);
    bool blank;
    const char *why = requirement_fault(line, size, &blank);
    must(!why || (!blank && strlen(why) < 100));
    if (!why && !blank) {
        size_t at = 0;
        while (at < size && (line[at] == ' ' || line[at] == '\t'))
            at++;
        must(at < size && isalnum((unsigned char)line[at]) && size <= REQUIREMENT_MAX);
        for (; at < size; at++) {
            unsigned char c = (unsigned char)line[at];
            must((c >= ' ' && c < 0x7f && !strchr("@/\\$#`:", c)) || c == '\t' || c == '\r');
            must(c != '-' || isalnum((unsigned char)line[at - 1]) ||
                 strchr("._+!*-", line[at - 1])); /* no word begins with one */
        }
    }
    free(line);
    return 0;
}
