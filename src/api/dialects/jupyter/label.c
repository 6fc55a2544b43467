/* See jupyter.h. What Jupyter knows of a kernel, its kernelspec and its session, is the kernel's
 * label. That is kept with the kernel as JSON; here it is read once, and the text of its session is
 * made once.
 *
 * SECURITY: a session has 12 KiB of names, and a tenant hundreds of kernels. Who asks for a session
 * has all of them looked at, and lists have all of their texts. */

#include "api/dialects/jupyter/jupyter.h"

#include "base/fd.h"

#include <stdlib.h>
#include <string.h>

const char *jupyter_session_text(const struct jupyter_hub *h, const char *member) {
    return json_string_value(json_object_get(json_object_get(h->label, "session"), member));
}

const char *jupyter_spec(const struct jupyter_hub *h) {
    return json_string_value(json_object_get(h->label, "spec"));
}

static void put_texts(const struct jupyter_hub *h, struct jw *j, const char *const *members) {
    for (; *members; members++)
        jw_key_str(j, *members, jupyter_session_text(h, *members));
}

/* With a gap where the kernel belongs. */
static struct blob *session_json(const struct jupyter_hub *h, size_t *ret_gap) {
    static const char *const members[] = {"id", "path", "name", "type", NULL};
    static const char *const notebook[] = {"path", "name", NULL};
    const char *type = jupyter_session_text(h, "type");
    struct buf json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    put_texts(h, &j, members);
    jw_key(&j, "kernel");
    *ret_gap = json.len;
    j.comma = true;
    if (type && strcmp(type, "notebook") == 0) {
        jw_key(&j, "notebook");
        jw_object(&j);
        put_texts(h, &j, notebook);
        jw_object_end(&j);
    }
    jw_object_end(&j);
    return blob_take(&json);
}

static void take_label(struct jupyter_hub *h, json_t *label) {
    jupyter_label_done(h);
    h->label = label;
    if (json_is_object(json_object_get(label, "session")))
        h->session_json = session_json(h, &h->session_gap);
}

void jupyter_label_read(struct jupyter_hub *h) {
    const char *label = kernel_label(jupyter_kernel(h));
    take_label(h, label ? json_loads(label, 0, NULL) : NULL);
}

static void set_label(struct jupyter_hub *h, json_t *label) {
    AUTO_FREE char *text = json_dumps(label, JSON_COMPACT);
    kernel_set_label(jupyter_kernel(h), text);
    take_label(h, label);
}

void jupyter_label_new(struct jupyter_hub *h, const char *spec) {
    set_label(h, json_pack("{s:s, s:s}", "dialect", JUPYTER_DIALECT, "spec", spec));
}

void jupyter_set_session(struct jupyter_hub *h, json_t *session) {
    json_t *label = json_copy(h->label);
    if (session)
        json_object_set_new(label, "session", session);
    else
        json_object_del(label, "session");
    set_label(h, label);
}

void jupyter_label_done(struct jupyter_hub *h) {
    json_decref(h->label);
    blob_unref(h->session_json);
    h->label = NULL;
    h->session_json = NULL;
}
