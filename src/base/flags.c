/* See flags.h. */

#include "base/flags.h"

#include "base/log.h"
#include "base/nearest.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64

int flags_bad(const char *verb, int code, char **argv, const struct option *longs, struct err *e) {
    /* getopt names a short one in optopt; a long one stands before optind. */
    char shorter[] = {'-', (char)optopt, '\0'}, quoted[80], question[80];
    const char *name = optopt > 0 && optopt < 256 ? shorter : argv[optind - 1];
    log_quote(name, quoted, sizeof quoted);
    if (code == ':')
        return err_user(e, "bad_option", "%s: %s needs a value", verb, quoted);
    char bare[NAME_MAX_BYTES], flag[NAME_MAX_BYTES];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
    struct nearest near = {.word = bare + strspn(bare, "-")};
    for (; longs->name; longs++)
        nearest_offer(&near, longs->name);
    if (near.best) {
        snprintf(flag, sizeof flag, "--%s", near.best);
        near.best = flag;
    }
    return err_user(e, "bad_option", "%s: %s is no option%s", verb, quoted,
                    nearest_ask(&near, question, sizeof question));
}
