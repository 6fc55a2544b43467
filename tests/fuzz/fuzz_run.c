/* The payload of a C_RUN from a client: refused, or all of it in bounds and the same when passed
 * on. */

#include "wire/run.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

/* How many the payload has: behind the flags and the profile. */
static uint32_t run_limits(const uint8_t *data, size_t size) {
    uint32_t profile, n;
    memcpy(&profile, data + 4, sizeof profile);
    must(size >= 12 && profile <= size - 12);
    memcpy(&n, data + 8 + profile, sizeof n);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct wire_in in;
    static struct wire_out again;
    static struct run_msg run;
    struct err e;
    uint16_t head[2] = {WIRE_C_RUN, WIRE_VERSION};
    if (size > sizeof in.data - sizeof head)
        return 0;
    memcpy(in.data, head, sizeof head);
    memcpy(in.data + sizeof head, data, size);
    must(wire_open(&in, sizeof head + size, &e) == 0);
    if (run_get(&in, &run, &e) < 0)
        return 0;
    /* No descriptor came with it, so it cannot have promised one. */
    must(run.code_fd == -1 && !(run.flags & RUN_CODE_FD));
    must(run.nargs <= RUN_MAX_ARGS && run.nenv <= RUN_MAX_ENV && strlen(run.profile) <= 64);
    run_put(&again, WIRE_C_RUN, &run);
    /* The limits of a peer of another build are more or fewer; all else is the same. */
    must(!again.bad);
    if (run_limits(data, size) == LIMITS_)
        must(again.len == in.len && memcmp(again.data, in.data, in.len) == 0);
    return 0;
}
