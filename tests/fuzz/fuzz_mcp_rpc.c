/* Any bytes as a message: whatever is read answers in JSON that is read again. */

#include "mcp/rpc.h"

#include "base/buf.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(json_t *message) {
    AUTO_BUF text = BUF_INIT;
    struct rpc r = rpc_read(message);
    struct err e;
    rpc_error(&text, r.id, r.code, r.kind == RPC_BAD ? r.wrong : "", NULL);
    json_t *again = rpc_parse(text.data, text.len, &e);
    if (!again || (r.kind == RPC_REQUEST && !json_equal(json_object_get(again, "id"), r.id)))
        abort();
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    json_t *tree = rpc_parse((const char *)data, size, &e);
    for (size_t i = 0; json_is_array(tree) && i < json_array_size(tree); i++)
        look(json_array_get(tree, i));
    if (json_is_object(tree))
        look(tree);
    json_decref(tree);
    return 0;
}
