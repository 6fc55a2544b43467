/* See idmap.h.
 *
 * Theory of operation: finding and writing are apart. Finding reads two small files, picks the
 * largest range that each gives to our identity, and checks what writing will need (the helper
 * programs, the ids being there at all in the namespace we live in). What is merely absent is no
 * error: the map is then single and `why` says how to do better. Writing is in idmap_write.c.
 *
 * SECURITY: a range that holds id 0 is refused: root inside must be nobody outside. */

#include "sandbox/idmap.h"

#include "base/buf.h"
#include "base/fd.h"
#include "sandbox/idmap_write.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    FILE_MAX = 1 << 20,
    NOBODY = 65534,
    RANGE_IDS = 65536,    /* how many ids we advise to give */
    RANGE_FIRST = 100000, /* where Debian, Fedora and their kin begin (SUB_UID_MIN) */
    PART_MIN = 2,         /* root inside, and one sandbox */
};

struct range {
    uint32_t first, count;
};

struct identity {
    const char *name; /* "": the uid alone */
    uid_t uid;        /* (uid_t)-1: the name alone */
};

/* A decimal id that ends at `end`; no sign, no space, no more than 32 bits. */
static int parse_id(const char *s, const char *end, uint32_t *ret) {
    uint64_t v = 0;
    if (s == end)
        return -1;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9')
            return -1;
        v = v * 10 + (uint64_t)(*s - '0');
        if (v > UINT32_MAX)
            return -1;
    }
    *ret = (uint32_t)v;
    return 0;
}

static bool is_identity(const char *s, size_t len, const struct identity *who) {
    if (len > 0 && strlen(who->name) == len && memcmp(s, who->name, len) == 0)
        return true;
    uint32_t uid;
    return who->uid != (uid_t)-1 && parse_id(s, s + len, &uid) == 0 && uid == who->uid;
}

/* "FIRST:COUNT", up to the end of the line. */
static int parse_range(const char *s, const char *end, struct range *ret) {
    const char *colon = memchr(s, ':', (size_t)(end - s));
    if (!colon || parse_id(s, colon, &ret->first) < 0 || parse_id(colon + 1, end, &ret->count) < 0)
        return -1;
    /* The id 2^32-1 means "no id" to the kernel. */
    return ret->first > 0 && ret->count <= UINT32_MAX - ret->first ? 0 : -1;
}

/* The largest range of `who`; count 0 when there is none. Lines of others are not looked at. */
static int find_range(const char *file, const char *text, const struct identity *who,
                      struct range *ret, struct err *e) {
    *ret = (struct range){0};
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        const char *colon = memchr(line, ':', (size_t)(end - line));
        if (!colon || !is_identity(line, (size_t)(colon - line), who))
            continue;
        struct range r;
        if (parse_range(colon + 1, end, &r) < 0)
            return err_set(e, EINVAL,
                           "%s: \"%.*s\" is no range of ids (name:first:count, first > 0)", file,
                           (int)(end - line > 80 ? 80 : end - line), line);
        if (r.count > ret->count)
            *ret = r;
    }
    return 0;
}

/* Accounts have ids of 16 bits: the system's, people's, those that systemd gives out. */
#define FIRST_APART 65536u

static bool overlap(const struct range *a, const struct range *b) {
    return (uint64_t)a->first < (uint64_t)b->first + b->count &&
           (uint64_t)b->first < (uint64_t)a->first + a->count;
}

/* SECURITY: what makes the ids of a range another's, too: whoever has them can signal, trace and
 * change the files of what runs under them. */
static void find_odd(const char *file, const char *text, const struct identity *who,
                     const struct range *ours, struct idmap *m) {
    if (m->odd[0])
        return;
    if (ours->first < FIRST_APART)
        snprintf(m->odd, sizeof m->odd,
                 "the ids from %u on in %s are those of the host's users, too", ours->first, file);
    for (const char *line = text, *end; *line && !m->odd[0]; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        const char *colon = memchr(line, ':', (size_t)(end - line));
        struct range r;
        if (!colon || *line == '#' || is_identity(line, (size_t)(colon - line), who) ||
            parse_range(colon + 1, end, &r) < 0 || !overlap(ours, &r))
            continue;
        snprintf(m->odd, sizeof m->odd, "%.*s has some of the ids from %u on in %s, too",
                 (int)(colon - line > 32 ? 32 : colon - line), line, ours->first, file);
    }
}

/* The first id after every range in the text, on a multiple of RANGE_IDS after RANGE_FIRST. */
static uint64_t first_free(const char *text) {
    uint64_t first = RANGE_FIRST;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        const char *colon = memchr(line, ':', (size_t)(end - line));
        struct range r;
        if (!colon || parse_range(colon + 1, end, &r) < 0)
            continue;
        while (first < (uint64_t)r.first + r.count)
            first += RANGE_IDS;
    }
    return first;
}

static void advise_range(const char *subuid, const char *subgid, const char *user, bool odd,
                         struct idmap *m) {
    uint64_t u = first_free(subuid), g = first_free(subgid);
    uint64_t first = u > g ? u : g, last = first + RANGE_IDS - 1;
    AUTO_BUF what = BUF_INIT;
    if (odd)
        buf_addf(&what, "take the lines of %.32s out of /etc/subuid and /etc/subgid", user);
    else
        buf_addf(&what, "no ids for %.32s in /etc/subuid and /etc/subgid", user);
    snprintf(m->why, sizeof m->why,
             "%s; as root: usermod --add-subuids %llu-%llu --add-subgids %llu-%llu %.32s",
             what.data, (unsigned long long)first, (unsigned long long)last,
             (unsigned long long)first, (unsigned long long)last, user);
}

/* Neither usermod nor newuidmap knows a user that has no line in /etc/passwd. */
static void advise_user(const char *user, char *out, size_t cap) {
    if (user)
        snprintf(out, cap, "there is no user %.32s; name another with --id-user", user);
    else
        snprintf(out, cap,
                 "the uid %u has no line in /etc/passwd, so it can have no ids of /etc/subuid; run "
                 "cloche as a user that has one",
                 (unsigned)geteuid());
}

/* True when our own user namespace has all of these ids (in one extent, as the kernel asks for). */
static bool ids_exist(const char *map_file, uint32_t first, uint32_t count) {
    char text[4096];
    struct err ignored;
    if (file_read_at(AT_FDCWD, map_file, text, sizeof text, &ignored) < 0)
        return true; /* no /proc: writing the map will tell */
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        char *s;
        uint64_t inside = strtoull(line, &s, 10);
        strtoull(s, &s, 10);
        uint64_t n = strtoull(s, &s, 10);
        if (first >= inside && (uint64_t)first + count <= inside + n)
            return true;
    }
    return false;
}

static void make_single(struct idmap *m, uid_t uid) {
    bool nobody = uid == 0 && ids_exist("/proc/self/uid_map", NOBODY, 1) &&
                  ids_exist("/proc/self/gid_map", NOBODY, 1);
    m->single = true;
    m->helper = false;
    m->count = 1;
    m->uid = nobody ? NOBODY : geteuid();
    m->gid = nobody ? NOBODY : getegid();
}

int idmap_find_in(const char *subuid, const char *subgid, const char *name, uid_t uid,
                  struct idmap *ret, struct err *e) {
    struct identity who = {name, uid};
    struct range u, g;
    if (find_range("/etc/subuid", subuid, &who, &u, e) < 0 ||
        find_range("/etc/subgid", subgid, &who, &g, e) < 0)
        return -1;
    struct idmap m = {
        .uid = u.first, .gid = g.first, .count = u.count < g.count ? u.count : g.count};
    if (m.count < PART_MIN) {
        make_single(&m, uid);
        advise_range(subuid, subgid, name, false, &m);
    } else {
        u.count = g.count = m.count;
        find_odd("/etc/subuid", subuid, &who, &u, &m);
        find_odd("/etc/subgid", subgid, &who, &g, &m);
        if (m.odd[0])
            advise_range(subuid, subgid, name, true, &m);
    }
    *ret = m;
    return 0;
}

/* Why this process cannot have a range written by the helpers, or NULL. `own` tells our own range
 * from another user's. */
static const char *helper_obstacle(bool own) {
    char path[64];
    if (!own)
        return "only root can use the ids of another user";
    if (!idmap_program("newuidmap", path, sizeof path) ||
        !idmap_program("newgidmap", path, sizeof path))
        return "newuidmap and newgidmap are not there; as root: apt install uidmap";
    if (!getpwuid(geteuid()))
        return "our uid has no line in /etc/passwd, which newuidmap needs; add one";
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return "no_new_privs is set on this process, so newuidmap can do nothing; start without "
               "it (systemd: NoNewPrivileges=no)";
    return NULL;
}

/* Turns a range that cannot be used into a single id that says why. */
static void check_usable(struct idmap *m, bool own) {
    if (m->single)
        return;
    const char *why = NULL;
    if (geteuid() != 0) {
        m->helper = true;
        why = helper_obstacle(own);
    } else if (!ids_exist("/proc/self/uid_map", m->uid, m->count) ||
               !ids_exist("/proc/self/gid_map", m->gid, m->count)) {
        why = "the ids of /etc/subuid and /etc/subgid do not exist in this container; give it a "
              "larger id map, or lines with ids below its own limit (/proc/self/uid_map)";
    }
    if (why) {
        make_single(m, geteuid());
        snprintf(m->why, sizeof m->why, "%s", why);
    }
}

/* The whole text, owned by the caller; a missing file is an empty one. */
static int read_text(const char *path, char **ret, struct err *e) {
    AUTO_FREE char *text = xmalloc(FILE_MAX);
    text[0] = '\0';
    if (file_read_at(AT_FDCWD, path, text, FILE_MAX, e) < 0 && e->code != ENOENT)
        return -1;
    *ret = text;
    text = NULL;
    return 0;
}

int idmap_find(const char *user, struct idmap *ret, struct err *e) {
    AUTO_FREE char *subuid = NULL;
    AUTO_FREE char *subgid = NULL;
    if (read_text("/etc/subuid", &subuid, e) < 0 || read_text("/etc/subgid", &subgid, e) < 0)
        return -1;
    struct passwd *pw = *user ? getpwnam(user) : getpwuid(geteuid());
    char name[64], number[16];
    snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    snprintf(name, sizeof name, "%s", *user ? user : pw ? pw->pw_name : number);
    uid_t uid = pw ? pw->pw_uid : *user ? (uid_t)-1 : geteuid();

    struct idmap m;
    if (idmap_find_in(subuid, subgid, name, uid, &m, e) < 0)
        return -1;
    if (m.single && !*user && geteuid() == 0) {
        struct idmap other;
        if (idmap_find_in(subuid, subgid, "cloche", (uid_t)-1, &other, e) < 0)
            return -1;
        if (!other.single)
            m = other;
    }
    if (m.single && !pw)
        advise_user(*user ? user : NULL, m.why, sizeof m.why);
    if (m.single)
        make_single(&m, geteuid()); /* `user` need not be the one we run as */
    check_usable(&m, !*user || (pw && pw->pw_uid == geteuid()));
    *ret = m;
    return 0;
}

struct idmap idmap_part(const struct idmap *m, unsigned k, unsigned n) {
    struct idmap part = *m;
    if (m->single)
        return part;
    part.count = n > 0 ? m->count / n : 0;
    if (part.count >= PART_MIN && k < n) {
        part.uid += k * part.count;
        part.gid += k * part.count;
        return part;
    }
    make_single(&part, geteuid());
    snprintf(part.why, sizeof part.why,
             "%u ids are too few for %u profiles; give more in /etc/subuid and /etc/subgid (%d is "
             "usual)",
             m->count, n, RANGE_IDS);
    return part;
}
