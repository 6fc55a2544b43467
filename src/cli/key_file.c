/* See key_file.h. */

#include "cli/key_file.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "config/options.h"
#include "config/paths.h"
#include "keys/keys_file.h"
#include "net/policy_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void key_file_done(struct key_file *p) {
    free(p->dir);
    free(p->name);
    fd_close(&p->fd);
}

static int load_settings(const struct key_options *o, struct options *to, struct err *e) {
    const struct {
        const char *name, *text;
    } flags[] = {{"keys", o->file}, {"state_dir", o->state_dir}, {"config", o->config}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].text && options_set_flag(to, flags[i].name, flags[i].text, e) < 0)
            return -1;
    return options_load(to, e);
}

/* The rules of a key may name the operator's sets. */
static int check_network(const struct key_options *o, const struct options *s, struct err *e) {
    AUTO_NET_SETS sets = {0};
    AUTO_NET_POLICY p = NET_POLICY_INIT;
    struct err why;
    if (!o->network)
        return 0;
    if (strlen(o->network) > KEYS_NETWORK_MAX)
        return err_user(e, "bad_value", "--network is longer than %u bytes", KEYS_NETWORK_MAX);
    const char *text = options_text(s, "network_sets");
    if (net_sets_from_text(text, strlen(text), &sets, &why) < 0 ||
        net_policy_from_text(o->network, strlen(o->network), &sets, "--network", &p, &why) < 0)
        return err_user(e, "bad_value", "%s", why.text);
    return 0;
}

/* Where the server looks for it: the settings `keys` and `state_dir`. */
static int find_file(const struct key_options *o, char **ret, bool *ret_named, struct err *e) {
    AUTO_OPTIONS s = options_new();
    if (load_settings(o, s, e) < 0 || check_network(o, s, e) < 0)
        return -1;
    const char *named = options_text(s, "keys");
    *ret_named = *named || o->file;
    if (*ret_named) {
        if (!*named || named[strlen(named) - 1] == '/') {
            char quoted[80];
            return err_user(e, "bad_value", "--keys is %s; it must be the path of a file",
                            log_quote(named, quoted, sizeof quoted));
        }
        return paths_absolute(named, ret, e);
    }
    AUTO_FREE char *usual = paths_state_dir();
    if (!usual && options_origin(s, "state_dir") == ORIGIN_DEFAULT)
        return err_user(e, "bad_value",
                        "neither XDG_STATE_HOME nor HOME is an absolute path; name a file with "
                        "--keys");
    AUTO_FREE char *dir = NULL;
    if (paths_absolute(options_text(s, "state_dir"), &dir, e) < 0)
        return -1;
    struct buf b = BUF_INIT;
    buf_addf(&b, "%s/keys.json", dir);
    *ret = buf_take(&b);
    return 0;
}

int key_file_open(const struct key_options *o, bool make, struct key_file *ret, struct err *e) {
    AUTO_FREE char *path = NULL;
    bool named;
    if (find_file(o, &path, &named, e) < 0)
        return -1;
    AUTO_KEY_FILE p = {.fd = -1};
    char *slash = strrchr(path, '/');
    p.name = xstrdup(slash + 1);
    *slash = '\0';
    p.dir = xstrdup(slash == path ? "/" : path);
    if (make && !named && paths_make_state_dir(p.dir, &p.fd, e) < 0)
        return -1;
    if (p.fd < 0)
        p.fd = open(p.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p.fd < 0 && (make || errno != ENOENT))
        return err_user(e, errno == ENOENT ? "no_such_file" : "not_readable", "%s: %s", p.dir,
                        strerror(errno));
    *ret = p;
    p = (struct key_file){.fd = -1};
    return 0;
}

int key_file_load(const struct key_file *p, struct keys *ret, bool *ret_there, struct err *e) {
    *ret_there = false;
    if (p->fd < 0)
        return 0;
    return keys_read(p->fd, p->name, ret, ret_there, e) < 0 ? err_wrap(e, "in %s", p->dir) : 0;
}

int key_file_load_to_change(const struct key_file *p, struct keys *ret, int *ret_lock,
                            struct err *e) {
    bool there;
    if (p->fd < 0)
        return 0;
    if (keys_lock(p->fd, p->name, ret_lock, e) < 0)
        return err_wrap(e, "in %s", p->dir);
    return key_file_load(p, ret, &there, e);
}

int key_file_save(const struct key_file *p, const struct keys *k, struct err *e) {
    return keys_write(p->fd, p->name, k, e) < 0 ? err_wrap(e, "in %s", p->dir) : 0;
}
