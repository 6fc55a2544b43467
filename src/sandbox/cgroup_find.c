/* Where our own control groups are: /proc/self/mountinfo read together with /proc/self/cgroup.
 *
 * A line of /proc/self/cgroup is ID:CONTROLLERS:PATH. v2 has ID 0 and no controllers; a v1
 * hierarchy has one controller or several (cpu,cpuacct), or a name (name=systemd), which is nothing
 * to us. PATH counts from the hierarchy's root, but a mount may show only a part of it: mountinfo's
 * fourth field is what is mounted, and PATH must lie below it. In a container that shares the
 * host's cgroup namespace that field is the container's own group.
 *
 * Pure functions of the two texts. They hold as many lines as the machine has mounts, and the
 * mounts' names are anybody's: a line that makes no sense is passed over. */

#include "sandbox/cgroup_find.h"

#include <stdio.h>
#include <string.h>

struct span {
    const char *at;
    size_t len;
};

static const struct {
    const char *name;
    unsigned role;
} role_names[] = {
    {"memory", ROLE_MEMORY},   {"pids", ROLE_PIDS},       {"cpu", ROLE_CPU},
    {"cpuacct", ROLE_CPUACCT}, {"freezer", ROLE_FREEZER},
};
#define N_ROLES (sizeof role_names / sizeof role_names[0])

static bool span_is(struct span s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* The text up to one of `ends`, taken off `rest` with the one separator after it. */
static struct span span_cut(struct span *rest, const char *ends) {
    size_t n = 0;
    while (n < rest->len && !strchr(ends, rest->at[n]))
        n++;
    struct span got = {rest->at, n};
    size_t used = n < rest->len ? n + 1 : n;
    rest->at += used;
    rest->len -= used;
    return got;
}

static unsigned roles_in(struct span list, const char *separators) {
    unsigned roles = 0;
    while (list.len > 0) {
        struct span word = span_cut(&list, separators);
        for (size_t i = 0; i < N_ROLES; i++)
            if (span_is(word, role_names[i].name))
                roles |= role_names[i].role;
    }
    return roles;
}

unsigned cgroup_roles_parse(const char *text, const char *separators) {
    return roles_in((struct span){text, strlen(text)}, separators);
}

const char *cgroup_roles_format(unsigned roles, char *out, size_t cap) {
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < N_ROLES && len < cap; i++)
        if (roles & role_names[i].role)
            len +=
                (size_t)snprintf(out + len, cap - len, "%s%s", len ? ", " : "", role_names[i].name);
    return out;
}

pid_t cgroup_name_pid(const char *name, size_t len) {
    const size_t prefix = strlen(CGROUP_PREFIX);
    if (len <= prefix || len > prefix + 9 || memcmp(name, CGROUP_PREFIX, prefix) != 0)
        return 0;
    pid_t pid = 0;
    for (size_t i = prefix; i < len; i++) {
        if (name[i] < '0' || name[i] > '9')
            return 0;
        pid = pid * 10 + (name[i] - '0');
    }
    return pid;
}

static bool is_octal(const char *s) {
    return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* mountinfo writes blanks and backslashes in names as \ooo. False when it does not fit. */
static bool unescape(struct span from, char *out, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < from.len; i++) {
        char c = from.at[i];
        if (c == '\\' && from.len - i > 3 && is_octal(from.at + i + 1)) {
            const char *o = from.at + i + 1;
            c = (char)((o[0] - '0') * 64 + (o[1] - '0') * 8 + (o[2] - '0'));
            i += 3;
        }
        if (n + 1 >= cap)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

/* The part of `path` below `root`: "" or "/…"; NULL when it is not below it. */
static const char *below(const char *root, const char *path) {
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(root, path, n) != 0 || (path[n] != '\0' && path[n] != '/'))
        return NULL;
    return strcmp(path + n, "/") == 0 ? "" : path + n;
}

struct mount_line {
    struct span root, point, type, options;
};

static bool mount_line_parse(struct span line, struct mount_line *ret) {
    for (int i = 0; i < 3; i++) /* mount id, parent id, device */
        span_cut(&line, " ");
    ret->root = span_cut(&line, " ");
    ret->point = span_cut(&line, " ");
    struct span word;
    do /* the mount's options, then any number of optional fields */
        word = span_cut(&line, " ");
    while (line.len > 0 && !span_is(word, "-"));
    ret->type = span_cut(&line, " ");
    span_cut(&line, " "); /* source */
    ret->options = line;
    return ret->options.len > 0;
}

/* The directory of group `path` in the hierarchy with `roles` (0: v2), through the first mount that
 * shows it. */
static bool find_dir(const char *mountinfo, unsigned roles, const char *path, char *out) {
    struct span rest = {mountinfo, strlen(mountinfo)};
    while (rest.len > 0) {
        struct mount_line m;
        char root[PATH_MAX], point[PATH_MAX];
        if (!mount_line_parse(span_cut(&rest, "\n"), &m))
            continue;
        if (!span_is(m.type, roles ? "cgroup" : "cgroup2"))
            continue;
        if (roles && (roles_in(m.options, ",") & roles) != roles)
            continue;
        if (!unescape(m.root, root, sizeof root) || !unescape(m.point, point, sizeof point))
            continue;
        const char *sub = below(root, path);
        if (sub && (size_t)snprintf(out, PATH_MAX, "%s%s", point, sub) < PATH_MAX)
            return true;
    }
    return false;
}

void cgroup_places_parse(const char *mountinfo, const char *self, struct cgroup_places *ret) {
    *ret = (struct cgroup_places){.nv1 = 0};
    struct span rest = {self, strlen(self)};
    while (rest.len > 0) {
        struct span line = span_cut(&rest, "\n");
        struct span id = span_cut(&line, ":"), controllers = span_cut(&line, ":");
        char path[PATH_MAX];
        if (line.len == 0 || line.at[0] != '/' || line.len >= sizeof path)
            continue;
        memcpy(path, line.at, line.len);
        path[line.len] = '\0';
        if (span_is(id, "0") && controllers.len == 0) {
            if (!find_dir(mountinfo, 0, path, ret->v2))
                ret->v2[0] = '\0';
            continue;
        }
        unsigned roles = roles_in(controllers, ",");
        if (roles == 0 || ret->nv1 == CGROUP_MAX_PROCS)
            continue;
        struct cgroup_place *place = &ret->v1[ret->nv1];
        if (find_dir(mountinfo, roles, path, place->path)) {
            place->roles = roles;
            ret->nv1++;
        }
    }
}
