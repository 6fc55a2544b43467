/* The profiles anew, while everything runs (SIGHUP at the supervisor).
 *
 * A profile keeps its index for good; one that is gone from the configuration stays in the list,
 * marked as removed. A changed profile, or one that is broken, gets a new nursery. The old one is
 * retired: it makes no more sandboxes, goes on with the programs that run in it, and ends with the
 * last of them. Both have the same range of ids: a slot is in one of them at a time. */

#include "warden/reload.h"

#include "base/fd.h"
#include "base/log.h"
#include "warden/gate.h"
#include "warden/nurseries.h"
#include "warden/server.h"
#include "wire/codec.h"

#include <errno.h>
#include <string.h>

static bool is_due(const struct warden *w, const struct config *next, unsigned i) {
    if (i >= w->config.nprofiles)
        return true;
    const struct nursery_child *n = w->nurseries[i];
    return !config_profile_same(&w->config.profiles[i], &next->profiles[i]) ||
           (n && n->state == PROFILE_BROKEN);
}

static int check(const struct warden *w, const struct config *next, struct err *e) {
    if (next->nprofiles < w->config.nprofiles)
        return err_set(e, EPROTO, "%u profiles became %u", w->config.nprofiles, next->nprofiles);
    for (unsigned i = 0; i < w->config.nprofiles; i++)
        if (strcmp(next->profiles[i].name, w->config.profiles[i].name) != 0)
            return err_set(e, EPROTO, "profile %u changed its name", i);
    unsigned need = w->no_live ? config_named(next, next->nprofiles) : next->nprofiles;
    if (need > w->parts && !w->ids.single)
        return err_set(e, ENOSPC, "%u ids are too few for one profile more; restart", w->ids.count);
    return 0;
}

static void tell_server(struct warden *w, uint32_t changed) {
    struct wire_out o;
    w_reload_put(&o, &(struct w_reload){.changed = changed, .config = w->all_fd});
    chan_send(&w->server_chan, &o);
}

static void renew(struct warden *w, unsigned i) {
    struct err e;
    if (w->nurseries[i])
        nurseries_retire(w, w->nurseries[i]);
    w->nurseries[i] = NULL;
    if (w->config.profiles[i].live)
        nurseries_add_live(w, i);
    else if (!w->config.profiles[i].removed && nurseries_add(w, i, &e) < 0)
        log_error("start nursery profile=%s error=%s", w->config.profiles[i].name,
                  log_text(e.text));
    server_tell_profile(w, i);
}

static int take_over(struct warden *w, int *fd, int *all, struct err *e) {
    struct config next;
    uint32_t changed = 0;
    if (config_unpack(*fd, &next, e) < 0)
        return -1;
    if (check(w, &next, e) < 0) {
        config_done(&next);
        return -1;
    }
    for (unsigned i = 0; i < next.nprofiles; i++)
        changed |= (uint32_t)is_due(w, &next, i) << i;
    config_done(&w->config);
    w->config = next;
    fd_close(&w->config_fd);
    w->config_fd = fd_take(fd);
    fd_close(&w->all_fd);
    w->all_fd = fd_take(all);
    tell_server(w, changed);
    gate_tell_config(w);
    for (unsigned i = 0; i < next.nprofiles; i++)
        if (changed & 1u << i)
            renew(w, i);
    log_info("profiles read n=%u started=%d", next.nprofiles, __builtin_popcount(changed));
    return 0;
}

void reload_serve(struct warden *w, struct wire_in *in) {
    struct err e;
    struct l_config m;
    int r = l_config_get(in, &m, &e);
    AUTO_FD fd = r < 0 ? -1 : wire_keep(in, m.config);
    AUTO_FD all = r < 0 ? -1 : wire_keep(in, m.all);
    if (r < 0 || take_over(w, &fd, &all, &e) < 0)
        log_error("profiles not read, those known stay error=%s", log_text(e.text));
}
