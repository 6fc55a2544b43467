/* See live_ports.h. */

#include "engine/live/live_ports.h"

#include "engine/process/live_hold.h"
#include "engine/process/live_state.h"

#include <errno.h>
#include <string.h>

void live_ports_enter(struct live *l) {
    l->inward++;
    live_hold(l);
}

void live_ports_exit(struct live *l) {
    l->inward--;
    live_release(l);
}

unsigned live_ports_entered(const struct live *l) {
    return l->inward;
}

uint16_t ports_at(const struct ports_answer *a, size_t i) {
    uint16_t port;
    memcpy(&port, a->ports + i * sizeof port, sizeof port);
    return port;
}

static int read_answer(struct wire_in *in, bool lists, struct ports_answer *ret, struct err *e) {
    struct i_reply_fd made;
    struct i_reply_ports list;
    struct i_error error;
    if (!in)
        return err_user(e, "sandbox_gone", "the sandbox is ending");
    if (in->type == WIRE_I_ERROR && i_error_get(in, &error, e) == 0)
        return err_set(e, (int)error.errnum, "%s", error.why);
    if (in->type != WIRE_I_REPLY)
        return err_set(e, EPROTO, "init's answer makes no sense");
    if (!lists && i_reply_fd_get(in, &made, e) < 0)
        return -1;
    if (!lists) {
        ret->fd = wire_keep(in, made.fd);
        return 0;
    }
    if (i_reply_ports_get(in, &list, e) < 0)
        return -1;
    ret->ports = list.ports.data;
    ret->n = list.ports.len / sizeof(uint16_t);
    ret->cut = list.cut;
    return 0;
}

static void ports_on_answer(void *arg, struct wire_in *in) {
    struct ports_ask *a = arg;
    struct ports_answer answer = {.fd = -1};
    struct err e;
    if (read_answer(in, a->lists, &answer, &e) < 0)
        answer.why = &e;
    a->live = NULL;
    a->fn(a->arg, &answer);
}

static int ask(struct live *l, const struct wire_out *o, struct ports_ask *a, struct err *e) {
    if (!wire_reaches(o, l->sandbox->version))
        return err_user(e, "ports_unavailable",
                        "the sandbox is of an older build, which knows of no connections inwards");
    if (!live_ask(l, o, ports_on_answer, a))
        return err_user(e, "sandbox_busy", "too many requests for this sandbox wait");
    a->live = l;
    return 0;
}

int live_ports_connect(struct live *l, uint16_t port, bool ipv6, struct ports_ask *a,
                       struct err *e) {
    struct wire_out o;
    a->lists = false;
    i_connect_put(&o, &(struct i_connect){.port = port, .ipv6 = ipv6});
    return ask(l, &o, a, e);
}

int live_ports_list(struct live *l, struct ports_ask *a, struct err *e) {
    struct wire_out o;
    a->lists = true;
    wire_begin(&o, WIRE_I_PORTS);
    return ask(l, &o, a, e);
}

void live_ports_leave(struct ports_ask *a) {
    if (a->live)
        live_unask(a->live, a);
    a->live = NULL;
}
