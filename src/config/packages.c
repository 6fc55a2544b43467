/* See packages.h. The texts become variables of every sandbox's programs, which can read them: an
 * index that wants a password is not for here. */

#include "config/packages.h"

#include "config/config.h"

#include <string.h>
#include <sys/stat.h>

#define MAX_URL 1000

static int check_url(const char *name, const char *url, struct err *e) {
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    if (!scheme)
        return err_user(e, "bad_value",
                        "%s is \"%.60s\"; it takes a URL that begins with https:// "
                        "or http://",
                        name, url);
    size_t host = strcspn(url + scheme, "/?#");
    if (host == 0 || strlen(url) > MAX_URL)
        return err_user(e, "bad_value", "%s is no URL of a server, of at most %d bytes", name,
                        MAX_URL);
    for (const char *at = url; *at; at++) {
        if (*at <= ' ' || *at > '~' || strchr("\"'\\<>", *at))
            return err_user(e, "bad_value", "%s has a character that no URL has", name);
    }
    if (memchr(url + scheme, '@', host))
        return err_user(e, "bad_value",
                        "%s has a password, which every sandbox could read; let a "
                        "mirror in front of it log in",
                        name);
    return 0;
}

int packages_check(const struct config *c, struct err *e) {
    struct stat st;
    if (c->pip_index_url[0] && check_url("pip_index_url", c->pip_index_url, e) < 0)
        return -1;
    if (c->npm_registry[0] && check_url("npm_registry", c->npm_registry, e) < 0)
        return -1;
    if (!c->wheels[0])
        return 0;
    if (c->wheels[0] != '/')
        return err_user(e, "bad_value", "wheels is \"%.100s\"; it takes an absolute path",
                        c->wheels);
    if (stat(c->wheels, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_user(e, "bad_value", "wheels: %.200s is no directory; make it first", c->wheels);
    return 0;
}
