/* See progress.h. */

#include "remote/sandbox/progress.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUIET_MS 500 /* what is done by then needs no bar */
#define STEP_MS  100
#define CELLS    24

static void add_bytes(struct buf *to, double n) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t i = 0;
    for (; n >= 1000 && i < 4; i++)
        n /= 1000;
    buf_addf(to, i ? "%.1f %s" : "%.0f %s", n, units[i]);
}

void progress_write(struct buf *to, const char *name, uint64_t done, uint64_t total, uint64_t ms) {
    buf_addf(to, "%s  ", name);
    if (total) {
        uint64_t part = done < total ? done : total;
        unsigned full = (unsigned)((double)part / (double)total * CELLS);
        buf_addc(to, '[');
        for (unsigned i = 0; i < CELLS; i++)
            buf_addc(to, i < full ? '#' : '.');
        buf_addf(to, "] %3u%%  ", (unsigned)((double)part / (double)total * 100));
    }
    add_bytes(to, (double)done);
    if (!ms)
        return;
    double rate = (double)done / (double)ms * 1000;
    buf_adds(to, "  ");
    add_bytes(to, rate);
    buf_adds(to, "/s");
    if (total > done && rate >= 1)
        buf_addf(to, "  %" PRIu64 " s left", (uint64_t)((double)(total - done) / rate) + 1);
}

static void moved(void *arg, uint64_t done, uint64_t total) {
    struct progress *p = arg;
    uint64_t now = now_ms();
    if (!p->is_terminal || now - p->start_ms < QUIET_MS || now - p->shown_ms < STEP_MS)
        return;
    AUTO_BUF line = BUF_INIT;
    struct err ignored;
    buf_adds(&line, "\r\033[K");
    progress_write(&line, p->name, done, total, now - p->start_ms);
    (void)fd_write_all(STDERR_FILENO, line.data, line.len, &ignored);
    p->shown_ms = now;
    p->shown = true;
}

void progress_init(struct progress *p, const char *name) {
    AUTO_BUF plain = BUF_INIT;
    *p = (struct progress){.start_ms = now_ms(), .is_terminal = isatty(STDERR_FILENO)};
    p->watch = (struct remote_watch){p, moved};
    text_add_plain(&plain, name, strlen(name));
    snprintf(p->name, sizeof p->name, "%.31s", plain.data);
}

void progress_done(struct progress *p) {
    struct err ignored;
    if (p->shown)
        (void)fd_write_all(STDERR_FILENO, "\r\033[K", 4, &ignored);
    p->shown = false;
}
