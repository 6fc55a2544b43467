/* See orders.h. The table says in which state of a sandbox an order about it is allowed. An order
 * may cross with the sandbox's end: one about a sandbox that is dying or gone is no fault. */

#include "nursery/orders.h"

#include "nursery/boxes.h"
#include "nursery/kernels.h"
#include "wire/codec.h"

/* Each begins with the sandbox's number. */
union order {
    uint64_t sandbox;
    struct n_make make;
    struct n_end end;
    struct n_kernel kernel;
};

static void order_make(struct nursery *n, struct box *b, const union order *m, struct wire_in *in) {
    (void)b;
    boxes_make(n, &m->make, in);
}

static void order_end(struct nursery *n, struct box *b, const union order *m, struct wire_in *in) {
    (void)n, (void)m, (void)in;
    if (b)
        boxes_end(b);
}

static void order_kernel(struct nursery *n, struct box *b, const union order *m,
                         struct wire_in *in) {
    kernels_more(n, b, &m->kernel, in);
}

#define GONE   (1u << BOX_GONE)
#define MAKING (1u << BOX_MAKING)
#define LIVE   (1u << BOX_LIVE)
#define DYING  (1u << BOX_DYING)

static const struct {
    enum wire_type type;
    enum wire_payload payload; /* says how many descriptors there are, too */
    unsigned states;
    void (*fn)(struct nursery *n, struct box *b, const union order *m, struct wire_in *in);
} orders[] = {
    {WIRE_N_MAKE, WIRE_PAYLOAD_n_make, GONE, order_make},
    {WIRE_N_END, WIRE_PAYLOAD_n_end, GONE | MAKING | LIVE | DYING, order_end},
    {WIRE_N_KERNEL, WIRE_PAYLOAD_n_kernel, GONE | LIVE | DYING, order_kernel},
};
#define ORDERS (sizeof orders / sizeof *orders)

bool orders_allows(enum wire_type type, enum box_state state) {
    for (size_t i = 0; i < ORDERS; i++) {
        if (orders[i].type == type)
            return orders[i].states & 1u << state;
    }
    return false;
}

bool orders_serve(struct nursery *n, struct wire_in *in) {
    union order m;
    struct err e;
    for (size_t i = 0; i < ORDERS; i++) {
        if (orders[i].type != in->type)
            continue;
        if (wire_get(in, wire_layout(orders[i].payload), &m, &e) < 0)
            return false;
        struct box *b = boxes_find(n, m.sandbox);
        if (!orders_allows(in->type, b ? b->state : BOX_GONE))
            return false;
        orders[i].fn(n, b, &m, in);
        return true;
    }
    return false;
}
