/* See people.h. */

#include "remote/people.h"

#include "base/buf.h"

#include <stddef.h>

#define FAR 1e15 /* beyond it nothing is sensible */

/* With a tenth where there is one, below `whole`. */
static void add(struct buf *to, double v, double whole, const char *unit) {
    long long tenths = (long long)((v < FAR ? v : FAR) * 10 + 0.5);
    if (v >= whole || tenths % 10 == 0)
        buf_addf(to, "%lld %s", (tenths + 5) / 10, unit);
    else
        buf_addf(to, "%lld.%lld %s", tenths / 10, tenths % 10, unit);
}

void people_time(struct buf *to, double seconds) {
    double s = seconds;
    static const struct {
        double from, size;
        const char *name;
    } units[] = {{172800, 86400, "d"}, {7200, 3600, "h"}, {120, 60, "min"}, {1, 1, "s"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (s >= units[i].from) {
            add(to, s / units[i].size, 10, units[i].name);
            return;
        }
    }
    add(to, s < 0 ? 0 : s * 1e3, 10, "ms");
}

void people_bytes(struct buf *to, double bytes) {
    double n = bytes;
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    if (n < 1024) {
        buf_addf(to, "%lld bytes", n > 0 ? (long long)n : 0);
        return;
    }
    for (n /= 1024; n >= 1024 && i < 3; i++)
        n /= 1024;
    add(to, n, 1024, units[i]);
}
