/* See rig_heard.h. */

#include "rig_heard.h"

#include "rig.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool get(int fd, struct wire_in *in) {
    struct err e;
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return false;
    return wire_recv(fd, in, &e) == WIRE_GOT;
}

static struct rig_sandbox *find(struct rig *r, uint64_t id) {
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        if (r->sandboxes[i].id == id)
            return &r->sandboxes[i];
    }
    return NULL;
}

static void from_warden(struct rig *r) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        if (!get(r->warden, &in))
            return;
        rig_say(r, "%s", wire_type_name(in.type));
        struct w_kernel kernel;
        struct w_keep keep;
        struct w_end end;
        struct err e;
        if (w_kernel_get(&in, &kernel, &e) == 0)
            find(r, kernel.sandbox)->wanted = kernel.number;
        if (w_keep_get(&in, &keep, &e) == 0)
            find(r, keep.sandbox)->journal = wire_keep(&in, keep.journal);
        if (w_end_get(&in, &end, &e) == 0 && end.sandbox != (uint64_t)r->nsandboxes)
            rig_say(r, "(%u)", (unsigned)end.sandbox);
    }
}

/* A request to a live kernel is told by its operation. */
static void from_kernel(struct rig *r, struct rig_process *p) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        struct k_do m;
        struct err e;
        if (!get(p->peer[0], &in))
            return;
        if (k_do_get(&in, &m, &e) < 0) {
            rig_say(r, "%s", wire_type_name(in.type));
            continue;
        }
        json_auto_t *o = json_loadb(m.json.data, m.json.len, 0, NULL);
        const char *id = json_string_value(json_object_get(o, "id"));
        const char *op = json_string_value(json_object_get(o, "op"));
        assert_non_null(op);
        rig_say(r, "%s", op);
        if (id)
            snprintf(p->asked, sizeof p->asked, "%s", id);
        if (id && strcmp(op, "execute") == 0)
            snprintf(p->cell, sizeof p->cell, "%s", id);
    }
}

static void from_init(struct rig *r, const struct rig_sandbox *s) {
    for (;;) {
        AUTO_WIRE_IN in = {0};
        if (!get(s->req, &in))
            return;
        if (in.type == WIRE_I_LEFT)
            continue;
        struct i_signal sig;
        struct i_echo echo;
        struct err e;
        if (i_signal_get(&in, &sig, &e) == 0)
            rig_say(r, "%s", sigabbrev_np((int)sig.signal));
        else
            rig_say(r, "%s", wire_type_name(in.type));
        if (i_echo_get(&in, &echo, &e) == 0) { /* answered by itself: it is only the beginning */
            struct wire_out o;
            i_reply_echo_put(&o, &(struct i_reply_echo){.value = echo.value});
            wire_send(s->req, &o, &e);
        }
    }
}

void rig_hear(struct rig *r) {
    from_warden(r);
    for (unsigned i = 0; i < r->nsandboxes; i++) {
        struct rig_sandbox *s = &r->sandboxes[i];
        for (unsigned p = 0; p < s->nprocesses; p++)
            from_kernel(r, &s->processes[p]);
        from_init(r, s);
    }
}
