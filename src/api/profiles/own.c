/* See own.h. */

#include "api/profiles/own.h"

#include "api/profiles/shelf.h"
#include "base/list.h"
#include "base/log.h"
#include "config/config.h"
#include "config/profile_read.h"
#include "loop/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CREW       2    /* threads, of which one may wait long */
#define BROKEN_MAX 10   /* of a tenant */
#define FILE_BYTES 4096 /* what a file takes besides its bytes, about */

static const char *own_text(const struct own_profile *p, const char *key) {
    const char *text = json_string_value(json_object_get(p->about, key));
    return text ? text : "";
}

static uint64_t own_number(const struct own_profile *p, const char *key) {
    json_int_t v = json_integer_value(json_object_get(p->about, key));
    return v > 0 ? (uint64_t)v : 0;
}

static void own_free(struct own_profile *p) {
    json_decref(p->about);
    free(p->tenant);
    free(p->name);
    free(p);
}

/* ---- looking ---- */

struct own_profile *own_next(const struct api *a, const char *tenant,
                             const struct own_profile *last) {
    struct own_profile *p = last ? last->next : a->own ? a->own->first : NULL;
    while (p && strcmp(p->tenant, tenant) != 0)
        p = p->next;
    return p;
}

struct own_profile *own_find(const struct api *a, const char *tenant, const char *name) {
    struct own_profile *p = own_next(a, tenant, NULL);
    while (p && strcmp(p->name, name) != 0)
        p = own_next(a, tenant, p);
    return p;
}

uint64_t own_size(uint64_t bytes, uint64_t files) {
    return bytes + files * FILE_BYTES;
}

static uint64_t bytes_of(const struct own_profile *p) {
    return p->state == OWN_READY ? own_size(own_number(p, "bytes"), own_number(p, "files")) : 0;
}

uint64_t own_bytes(const struct api *a, const char *tenant) {
    uint64_t sum = 0;
    for (struct own_profile *p = NULL; (p = own_next(a, tenant, p));)
        sum += bytes_of(p);
    return sum;
}

unsigned own_count(const struct api *a, const char *tenant) {
    unsigned n = 0;
    for (struct own_profile *p = NULL; (p = own_next(a, tenant, p));)
        n += p->state != OWN_BROKEN;
    return n;
}

unsigned own_users(const struct own_profile *p) {
    return p->tree ? p->tree->users : 0;
}

unsigned own_base(const struct own_profile *p) {
    const struct config *c = &p->all->api->o.engine->config;
    unsigned i = 0;
    while (i < c->nprofiles && (c->profiles[i].removed || c->profiles[i].live ||
                                strcmp(c->profiles[i].name, own_text(p, "from")) != 0))
        i++;
    return i;
}

/* ---- coming and going ---- */

struct own_profile *own_add(struct api *a, const char *tenant, const char *name, json_t *about) {
    struct own_profile *p = xcalloc(1, sizeof *p);
    p->all = a->own;
    p->state = OWN_BUILDING;
    p->tenant = xstrdup(tenant);
    p->name = xstrdup(name);
    p->about = about;
    id_make("prf_", p->id, sizeof p->id);
    LIST_APPEND(&a->own->first, p, next);
    return p;
}

/* What the engine has to know of it. */
static int make_tree(struct own_profile *p, struct tree **ret, struct err *e) {
    struct config scratch = {.nprofiles = 1};
    struct config_profile *said = &scratch.profiles[0];
    said->name = xstrdup(p->name);
    json_auto_t *definition = json_object();
    json_object_set(definition, "env", json_object_get(p->about, "env"));
    json_object_set(definition, "limits", json_object_get(p->about, "limits"));
    const char *version = own_text(p, "version"), *dot = strchr(version, '.');
    int rc = profile_read(p->id, definition, said, e);
    if (rc == 0 && !dot)
        rc = err_set(e, EPROTO, "profile %s says no version", p->id);
    if (rc == 0) {
        struct tree *t = xcalloc(1, sizeof *t);
        memcpy(t->id, p->id, sizeof t->id);
        t->tenant = xstrdup(p->tenant);
        t->name = xstrdup(p->name);
        t->profile = xstrdup(own_text(p, "from"));
        t->python = xstrndup(version, (size_t)(dot - version) + 1 + strcspn(dot + 1, "."));
        t->env = said->env;
        t->limits = said->limits;
        said->env = (struct config_list){0};
        *ret = t;
    }
    config_done(&scratch);
    return rc;
}

int own_ready(struct own_profile *p, struct err *e) {
    struct tree *t = NULL;
    if (make_tree(p, &t, e) < 0)
        return -1;
    trees_add(p->all->api->o.engine, t);
    p->tree = t;
    p->state = OWN_READY;
    return 0;
}

void own_broken(struct own_profile *p, const char *why) {
    p->state = OWN_BROKEN;
    snprintf(p->why, sizeof p->why, "%s", why);
}

int own_remove(struct own_profile *p, struct err *e) {
    if (p->state == OWN_READY && shelf_retire(p->all->dir, p->id, e) < 0)
        return -1;
    struct tree *t = p->tree;
    LIST_REMOVE(&p->all->first, p, next);
    own_free(p);
    if (t)
        trees_remove(t);
    return 0;
}

/* SECURITY: they count as none, so there must be an end to them. */
void own_spare(const struct api *a, const char *tenant) {
    struct own_profile *oldest = NULL, *p = NULL;
    struct err ignored;
    unsigned n = 0;
    while ((p = own_next(a, tenant, p))) {
        n += p->state == OWN_BROKEN;
        oldest = oldest || p->state != OWN_BROKEN ? oldest : p;
    }
    if (oldest && n >= BROKEN_MAX)
        own_remove(oldest, &ignored);
}

static void on_unused(void *arg, const char *id) {
    const struct own_profiles *all = arg;
    shelf_remove_old(all->dir, all->crew, id);
}

/* ---- the server's start ---- */

static void take_kept(void *arg, const char *id, json_t *about) {
    struct own_profiles *all = arg;
    const char *tenant = json_string_value(json_object_get(about, "tenant"));
    const char *name = json_string_value(json_object_get(about, "name"));
    struct err e;
    if (!tenant || !name || strlen(id) >= ID_MAX || own_find(all->api, tenant, name)) {
        log_error("profile not taken up id=%s", id);
        json_decref(about);
        return;
    }
    struct own_profile *p = own_add(all->api, tenant, name, about);
    snprintf(p->id, sizeof p->id, "%s", id);
    if (own_ready(p, &e) < 0) {
        log_error("profile not taken up id=%s error=%s", id, log_text(e.text));
        own_broken(p, e.text);
    }
}

int own_open(struct api *a, int dir, struct err *e) {
    a->own = xcalloc(1, sizeof *a->own);
    a->own->api = a;
    a->own->dir = dir;
    a->o.engine->trees.on_unused = on_unused;
    a->o.engine->trees.arg = a->own;
    if (a->config->http.tenant_profiles == 0)
        return 0;
    if (crew_new(a->o.loop, CREW, &a->own->crew, e) < 0)
        return -1;
    return shelf_read(dir, take_kept, a->own, e);
}

static bool is_used(void *arg, const char *id) {
    return trees_has(arg, id);
}

void own_settled(struct api *a) {
    if (a->config->http.tenant_profiles)
        shelf_sweep(a->own->dir, a->own->crew, is_used, a->o.engine);
}

/* ---- for clients ---- */

static const struct field package_fields[] = {
    HAS("name", FIELD_STRING),
    HAS("version", FIELD_STRING),
    MAY_HAVE("sha256", FIELD_STRING),
};
const struct schema own_package_schema = {SCHEMA("InstalledPackage", package_fields)};

void own_put(struct jw *j, const struct own_profile *p, bool in_list) {
    jw_key_bool(j, "own", true);
    jw_key_str(j, "from", own_text(p, "from"));
    jw_key(j, "requirements");
    jw_json(j, json_object_get(p->about, "requirements"), "[]");
    if (!in_list) {
        jw_key(j, "installed");
        jw_json(j, json_object_get(p->about, "installed"), "[]");
    }
    jw_key_uint(j, "bytes", bytes_of(p));
    jw_key_real(j, "created", json_number_value(json_object_get(p->about, "created")));
    jw_key_uint(j, "users", own_users(p));
}
