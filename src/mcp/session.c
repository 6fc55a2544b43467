/* See session.h. An id is CAN.VERSION.NONCE.MAC; the session's name is made of the nonce. */

#include "mcp/session.h"

#include "base/list.h"
#include "mcp/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE  "session"
#define NAME "session-%.12s"

struct session {
    struct session *next; /* an older one */
    char owner[128], name[48];
    bool ended;
    int level;
    char *watched[SESSION_WATCHES]; /* owned */
};

static struct session *session_known(const struct mcp *m, const struct mcp_asker *who) {
    struct session *s = m->sessions;
    while (s && (strcmp(s->owner, who->owner) != 0 || strcmp(s->name, who->session) != 0))
        s = s->next;
    return s;
}

static void session_free(struct session *s) {
    for (unsigned i = 0; i < SESSION_WATCHES; i++)
        free(s->watched[i]);
    free(s);
}

/* SECURITY: the oldest of the owner goes when it has half of them all. */
static void session_make_room(struct mcp *m, const char *owner) {
    struct session **oldest = NULL, **own_oldest = NULL;
    unsigned n = 0, own = 0;
    for (struct session **at = &m->sessions; *at; at = &(*at)->next) {
        bool is_own = strcmp((*at)->owner, owner) == 0;
        oldest = at;
        own_oldest = is_own ? at : own_oldest;
        n++;
        own += is_own;
    }
    if (own >= SESSIONS_MAX / 2)
        session_free(LIST_POP(own_oldest, next));
    else if (n >= SESSIONS_MAX)
        session_free(LIST_POP(oldest, next));
}

static struct session *session_note(struct mcp *m, const struct mcp_asker *who) {
    struct session *s = session_known(m, who);
    if (s)
        return s;
    session_make_room(m, who->owner);
    s = xcalloc(1, sizeof *s);
    snprintf(s->owner, sizeof s->owner, "%s", who->owner);
    snprintf(s->name, sizeof s->name, "%s", who->session);
    LIST_PUSH(&m->sessions, s, next);
    return s;
}

void session_new(struct visit *v, const char *version, unsigned can, char *ret, unsigned cap) {
    char nonce[ID_MAX], claim[TOKEN_MAX];
    id_make("", nonce, sizeof nonce);
    snprintf(claim, sizeof claim, "%u.%s.%s", can, version, nonce);
    token_write(v->m->host.secret, USE, v->who->owner, claim, ret, cap);
    snprintf(v->who->session, sizeof v->who->session, NAME, nonce);
}

enum session_found session_find(struct visit *v, const char *id) {
    char claim[TOKEN_MAX];
    if (!id)
        return SESSION_NONE;
    if (!token_read(v->m->host.secret, USE, v->who->owner, id, claim, sizeof claim))
        return SESSION_UNKNOWN;
    char *version = strchr(claim, '.'), *nonce = strrchr(claim, '.');
    if (!version || version == nonce)
        return SESSION_UNKNOWN;
    *nonce = '\0';
    v->can = claim[0] >= '0' && claim[0] <= '7' ? (unsigned)(claim[0] - '0') : 0;
    v->version = era_legacy(version + 1) ? era_legacy(version + 1) : v->version;
    snprintf(v->who->session, sizeof v->who->session, NAME, nonce + 1);
    const struct session *s = session_known(v->m, v->who);
    return s && s->ended ? SESSION_UNKNOWN : SESSION_GOOD;
}

void session_end(struct visit *v) {
    session_note(v->m, v->who)->ended = true;
    if (v->m->host.on_session_over)
        v->m->host.on_session_over(v->who);
}

int session_level(const struct mcp *m, const struct mcp_asker *who) {
    const struct session *s = who->session[0] ? session_known(m, who) : NULL;
    return s ? s->level : 0;
}

void session_set_level(struct mcp *m, const struct mcp_asker *who, int level) {
    if (who->session[0])
        session_note(m, who)->level = level;
}

bool session_watch(struct mcp *m, const struct mcp_asker *who, const char *uri, bool on) {
    struct session *s = session_note(m, who);
    char **free_place = NULL;
    for (unsigned i = 0; i < SESSION_WATCHES; i++) {
        if (s->watched[i] && strcmp(s->watched[i], uri) == 0) {
            if (on)
                return true;
            free(s->watched[i]);
            s->watched[i] = NULL;
        }
        if (!s->watched[i])
            free_place = &s->watched[i];
    }
    if (on && free_place)
        *free_place = xstrdup(uri);
    return !on || free_place;
}

bool session_watches(const struct mcp *m, const struct mcp_asker *who, const char *uri) {
    const struct session *s = who->session[0] ? session_known(m, who) : NULL;
    for (unsigned i = 0; s && i < SESSION_WATCHES; i++)
        if (s->watched[i] && strcmp(s->watched[i], uri) == 0)
            return true;
    return false;
}
