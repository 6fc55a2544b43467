/* See keys_text.h. */

#include "keys/keys_text.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "keys/key_value.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CREATED_MAX 253402300799.0 /* the end of the year 9999 */

static int check_members(const json_t *object, const char *const *known, struct err *e) {
    const char *member;
    const json_t *v;
    json_object_foreach((json_t *)object, member, v) {
        const char *const *k = known;
        while (*k && strcmp(*k, member) != 0)
            k++;
        char quoted[64];
        if (!*k)
            return err_user(e, "bad_keys", "there is no member %s",
                            log_quote(member, quoted, sizeof quoted));
    }
    return 0;
}

/* Borrowed from the object; NULL with *e filled when it is not there or no string. */
static const char *get_text(const json_t *object, const char *member, struct err *e) {
    const json_t *v = json_object_get(object, member);
    if (!json_is_string(v))
        err_user(e, "bad_keys", v ? "%s must be a string" : "%s is missing", member);
    return json_string_value(v);
}

static int read_word(const json_t *object, const char *member, char **ret, struct err *e) {
    const char *text = get_text(object, member, e);
    if (!text || key_check_word("bad_keys", member, text, e) < 0)
        return -1;
    *ret = xstrdup(text);
    return 0;
}

static int read_id(const json_t *object, struct key *k, struct err *e) {
    const char *text = get_text(object, "id", e);
    uint8_t bits[KEY_ID_BYTES];
    size_t prefix = strlen(KEY_ID_PREFIX);
    if (!text)
        return -1;
    if (strncmp(text, KEY_ID_PREFIX, prefix) != 0 ||
        !key_hex_read(text + prefix, bits, sizeof bits))
        return err_user(e, "bad_keys",
                        "id must be " KEY_ID_PREFIX " and 16 hexadecimal digits in lower case");
    memcpy(k->id, text, strlen(text) + 1);
    return 0;
}

static int read_hash(const json_t *object, struct key *k, struct err *e) {
    const char *text = get_text(object, "sha256", e);
    if (!text)
        return -1;
    if (!key_hex_read(text, k->sha256, sizeof k->sha256))
        return err_user(e, "bad_keys", "sha256 must be 64 hexadecimal digits in lower case");
    return 0;
}

static int read_created(const json_t *object, struct key *k, struct err *e) {
    const json_t *v = json_object_get(object, "created");
    k->created = json_number_value(v);
    if (!json_is_number(v) || !(k->created >= 0 && k->created <= CREATED_MAX))
        return err_user(e, "bad_keys",
                        v ? "created must be a number of seconds since 1970"
                          : "created is missing");
    return 0;
}

/* A limit that is not there stays 0. */
static int read_whole_limit(const json_t *limits, const char *member, uint32_t *ret,
                            struct err *e) {
    const json_t *v = json_object_get(limits, member);
    if (!v)
        return 0;
    if (!json_is_integer(v))
        return err_user(e, "bad_keys", "%s must be a whole number", member);
    if (key_check_limit("bad_keys", member, (double)json_integer_value(v), 1, e) < 0)
        return -1;
    *ret = (uint32_t)json_integer_value(v);
    return 0;
}

static int read_rate(const json_t *limits, double *ret, struct err *e) {
    static const char member[] = "requests_per_second";
    const json_t *v = json_object_get(limits, member);
    if (!v)
        return 0;
    if (!json_is_number(v))
        return err_user(e, "bad_keys", "%s must be a number", member);
    *ret = json_number_value(v);
    return key_check_limit("bad_keys", member, *ret, KEYS_RATE_MIN, e);
}

static int read_limits(const json_t *object, struct key_limits *l, struct err *e) {
    static const char *const known[] = {"requests_per_second", "concurrent",
                                        "cpu_seconds_per_minute", "sandboxes", NULL};
    const json_t *v = json_object_get(object, "limits");
    if (!v)
        return 0;
    if (!json_is_object(v))
        return err_user(e, "bad_keys", "limits must be an object");
    if (check_members(v, known, e) < 0 || read_rate(v, &l->requests_per_second, e) < 0 ||
        read_whole_limit(v, known[1], &l->concurrent, e) < 0 ||
        read_whole_limit(v, known[2], &l->cpu_seconds_per_minute, e) < 0 ||
        read_whole_limit(v, known[3], &l->sandboxes, e) < 0)
        return err_wrap(e, "limits");
    return 0;
}

/* Whether they are rules, whoever uses them finds out: they may name sets. */
static int read_network(const json_t *object, struct key *k, struct err *e) {
    if (!json_object_get(object, "network"))
        return 0;
    const char *text = get_text(object, "network", e);
    if (!text)
        return -1;
    if (strlen(text) > KEYS_NETWORK_MAX)
        return err_user(e, "bad_keys", "network has more than %u bytes", KEYS_NETWORK_MAX);
    k->network = xstrdup(text);
    return 0;
}

static int read_rights(const json_t *object, struct key *k, struct err *e) {
    const json_t *list = json_object_get(object, "rights"), *v;
    size_t i;
    if (!list)
        return 0;
    if (!json_is_array(list))
        return err_user(e, "bad_keys", "rights must be a list");
    json_array_foreach(list, i, v) {
        if (!json_is_string(v))
            return err_user(e, "bad_keys", "rights[%zu] must be a string", i);
        if (key_read_right("bad_keys", json_string_value(v), &k->rights, e) < 0)
            return err_wrap(e, "rights[%zu]", i);
    }
    return 0;
}

/* *k is the list's already, so what is half read is released with it. */
static int read_one(const json_t *object, struct key *k, struct err *e) {
    static const char *const known[] = {"id",     "name",    "tenant", "sha256", "created",
                                        "limits", "network", "rights", NULL};
    if (!json_is_object(object))
        return err_user(e, "bad_keys", "must be an object");
    if (check_members(object, known, e) < 0 || read_id(object, k, e) < 0 ||
        read_word(object, "name", &k->name, e) < 0 || read_hash(object, k, e) < 0 ||
        read_created(object, k, e) < 0 || read_limits(object, &k->limits, e) < 0 ||
        read_network(object, k, e) < 0 || read_rights(object, k, e) < 0)
        return -1;
    if (json_object_get(object, "tenant"))
        return read_word(object, "tenant", &k->tenant, e);
    k->tenant = xstrdup(k->name);
    return 0;
}

static int by_id(const void *a, const void *b) {
    return strcmp((*(const struct key *const *)a)->id, (*(const struct key *const *)b)->id);
}

static int by_hash(const void *a, const void *b) {
    return memcmp((*(const struct key *const *)a)->sha256, (*(const struct key *const *)b)->sha256,
                  sizeof((struct key *)NULL)->sha256);
}

static int refuse_doubles(const struct keys *k, int (*by)(const void *, const void *),
                          const char *member, struct err *e) {
    AUTO_FREE const struct key **sorted = xcalloc(k->n, sizeof *sorted);
    for (unsigned i = 0; i < k->n; i++)
        sorted[i] = &k->items[i];
    qsort(sorted, k->n, sizeof *sorted, by);
    for (unsigned i = 1; i < k->n; i++) {
        if (by(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        size_t a = (size_t)(sorted[i - 1] - k->items), b = (size_t)(sorted[i] - k->items);
        return err_user(e, "bad_keys", "keys[%zu]: %s is the same as that of keys[%zu]",
                        a > b ? a : b, member, a > b ? b : a);
    }
    return 0;
}

static int read_list(const json_t *list, struct keys *k, struct err *e) {
    if (!json_is_array(list))
        return err_user(e, "bad_keys", list ? "keys must be an array" : "keys is missing");
    size_t n = json_array_size(list);
    if (n > KEYS_MAX)
        return err_user(e, "bad_keys", "keys has %zu elements; at most %u are allowed", n,
                        KEYS_MAX);
    k->items = xcalloc(n, sizeof *k->items);
    while (k->n < n) {
        unsigned i = k->n++;
        if (read_one(json_array_get(list, i), &k->items[i], e) < 0)
            return err_wrap(e, "keys[%u]", i);
    }
    if (refuse_doubles(k, by_id, "id", e) < 0)
        return -1;
    return refuse_doubles(k, by_hash, "sha256", e);
}

int keys_parse(const char *text, size_t len, struct keys *ret, struct err *e) {
    static const char *const known[] = {"keys", NULL};
    AUTO_KEYS k = {0};
    json_auto_t *root = NULL;
    struct err why;
    if (len > KEYS_FILE_MAX)
        return err_user(e, "bad_keys", "more than %u bytes are not allowed", KEYS_FILE_MAX);
    if (json_read(text, len, 4, &root, &why) < 0)
        return err_user(e, "bad_keys", "%s", why.text);
    if (!json_is_object(root))
        return err_user(e, "bad_keys", "must be a JSON object");
    if (check_members(root, known, e) < 0 || read_list(json_object_get(root, "keys"), &k, e) < 0)
        return -1;
    *ret = k;
    k = (struct keys){0};
    return 0;
}

/* ---- list to text ---- */

static void encode_limits(struct jw *j, const struct key_limits *l) {
    if (l->requests_per_second == 0 && !l->concurrent && !l->cpu_seconds_per_minute &&
        !l->sandboxes)
        return;
    jw_key(j, "limits");
    jw_object(j);
    if (l->requests_per_second != 0)
        jw_key_real(j, "requests_per_second", l->requests_per_second);
    if (l->concurrent)
        jw_key_uint(j, "concurrent", l->concurrent);
    if (l->cpu_seconds_per_minute)
        jw_key_uint(j, "cpu_seconds_per_minute", l->cpu_seconds_per_minute);
    if (l->sandboxes)
        jw_key_uint(j, "sandboxes", l->sandboxes);
    jw_object_end(j);
}

static void encode_rights(struct jw *j, uint32_t rights) {
    if (!rights)
        return;
    jw_key(j, "rights");
    jw_array(j);
    for (unsigned i = 0; key_rights[i]; i++) {
        if (rights & 1u << i)
            jw_str(j, key_rights[i]);
    }
    jw_array_end(j);
}

void keys_encode(const struct keys *k, struct buf *to) {
    struct jw j = JW_INIT(to);
    jw_object(&j);
    jw_key(&j, "keys");
    jw_array(&j);
    for (unsigned i = 0; i < k->n; i++) {
        const struct key *key = &k->items[i];
        char hash[2 * sizeof key->sha256 + 1];
        key_hex_write(key->sha256, sizeof key->sha256, hash);
        jw_object(&j);
        jw_key_str(&j, "id", key->id);
        jw_key_str(&j, "name", key->name);
        jw_key_str(&j, "tenant", key->tenant);
        jw_key_str(&j, "sha256", hash);
        jw_key_real(&j, "created", key->created);
        encode_limits(&j, &key->limits);
        if (key->network)
            jw_key_str(&j, "network", key->network);
        encode_rights(&j, key->rights);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    jw_object_end(&j);
    buf_addc(to, '\n');
}
