/* See nearest.h. The distance is the number of characters to insert, remove, change or swap. */

#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 40u /* nobody means a longer one */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t rows[3][LONGEST + 1]; /* row i is rows[i % 3] */
    for (size_t k = 0; k <= nb; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *before = rows[(i - 1) % 3];
        now[0] = i;
        for (size_t k = 1; k <= nb; k++) {
            now[k] =
                least(before[k - 1] + (a[i - 1] != b[k - 1]), least(before[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], rows[(i - 2) % 3][k - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

void nearest_offer(struct nearest *n, const char *candidate) {
    size_t na = strlen(n->word), nb = strlen(candidate);
    if (na == 0 || na > LONGEST || nb > LONGEST)
        return;
    size_t d = distance(n->word, na, candidate, nb);
    bool begins = na > 2 && strncmp(candidate, n->word, na) == 0; /* "timeout" of "timeout_ms" */
    if (!begins && d > (least(na, nb) + 2) / 3)
        return;
    d = begins ? 0 : d;
    if (!n->best || d < n->distance) {
        n->best = candidate;
        n->distance = d;
    }
}

const char *nearest_found(const struct nearest *n) {
    return n->best;
}

const char *nearest_ask(const struct nearest *n, char *out, size_t cap) {
    out[0] = '\0';
    if (n->best)
        snprintf(out, cap, " (did you mean %s?)", n->best);
    return out;
}
