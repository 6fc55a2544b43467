/* See heard.h. */

#include "api/core/heard.h"

#include "api/core/call.h"
#include "http/fields_read.h"

#include <stdlib.h>

struct heard *heard_read(const struct schema *s, const void *data, size_t len, bool binary) {
    struct heard *h = xcalloc(1, sizeof *h);
    int status = 0;
    *h = (struct heard){.data = !binary ? NULL : data ? data : "", .len = len, .reply = BUF_INIT};
    if (!binary &&
        fields_read(s, "application/json", data, len, &h->json, &status, &h->reply) < 0) {
        h->json = NULL;
        call_add_error(&h->reply, status);
    }
    return h;
}

void heard_drop(void *message) {
    struct heard *h = message;
    json_decref(h->json);
    buf_done(&h->reply);
    free(h);
}
