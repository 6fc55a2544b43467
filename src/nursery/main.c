/* cloche-nursery: `birth PROFILE UID GID COUNT FLAGS` (by the warden) and `nurse PROFILE` (by
 * itself, inside). Descriptor 3 is the channel to the warden, 4 the configuration. */

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "nursery/birth.h"
#include "nursery/nursery.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static uint32_t number(const char *text) {
    static const struct num_rule any = {"argument", 0, UINT32_MAX};
    uint32_t v = 0;
    struct err e;
    if (num_u32(text, &any, &v, &e) < 0) {
        log_error("nursery error=%s", log_text(e.text));
        _exit(125);
    }
    return v;
}

int main(int argc, char **argv) {
    log_init("nursery", LOG_INFO);
    prctl(PR_SET_NAME, "cloche-nursery"); /* we were started by descriptor, which gives no name */
    if (argc == 3 && strcmp(argv[1], "nurse") == 0)
        nurse(number(argv[2]));
    if (argc != 7 || strcmp(argv[1], "birth") != 0) {
        log_error("cloche-nursery is started by cloche-warden; use `cloche serve`");
        return 125;
    }
    struct config c;
    struct err e;
    if (config_unpack(NURSERY_CONFIG, &c, &e) < 0) {
        log_error("nursery error=%s", log_text(e.text));
        return 125;
    }
    log_set_format(c.log_format);
    uint32_t flags = number(argv[6]);
    struct idmap ids = {.uid = number(argv[3]),
                        .gid = number(argv[4]),
                        .count = number(argv[5]),
                        .single = flags & 1,
                        .helper = flags & 2};
    unsigned profile = number(argv[2]);
    if (profile >= c.nprofiles)
        return 125;
    fd_set_cloexec(NURSERY_CHAN, 1, &e);
    birth(&c, profile, &ids, NURSERY_CHAN, NURSERY_CONFIG);
}
