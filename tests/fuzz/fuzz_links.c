/* Any bytes as a link: one whose signature is not ours opens nothing, whatever it claims, and what
 * was read of it is in bounds. One that was written is read as it was, and as nothing else: neither
 * for another port or sandbox, nor with any byte of it changed, missing or added. */

#include "keys/links.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct link_secret secret = {"a secret of the fuzzer: 32 long!"};

#define SANDBOX "sbx_00112233445566778899aabbccddeeff"

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool look(const char *text, size_t len, const char *sandbox, uint16_t port,
                 struct link_claim *c) {
    *c = (struct link_claim){.sandbox = sandbox, .port = port};
    char *exact = malloc(len ? len : 1);
    memcpy(exact, text, len);
    bool is = link_read(&secret, exact, len, c);
    free(exact);
    must(memchr(c->key, '\0', sizeof c->key) != NULL);
    return is;
}

/* A claim that the bytes choose: its link is taken, and nothing beside it. */
static void write_one(const uint8_t *data, size_t size) {
    struct link_claim made = {.sandbox = SANDBOX, .port = 8001, .expires = size}, c;
    AUTO_BUF text = BUF_INIT;
    for (size_t i = 0; i < size && i < 20; i++) {
        made.expires = made.expires * 7 + data[i];
        made.key[i] = "0123456789abcdef"[data[i] % 16];
    }
    made.expires %= 1000000000000000000u; /* 18 digits, as many as are read */
    link_write(&secret, &made, &text);
    must(look(text.data, text.len, SANDBOX, 8001, &c));
    must(c.expires == made.expires && strcmp(c.key, made.key) == 0);
    must(!look(text.data, text.len, SANDBOX, 8002, &c));
    must(!look(text.data, text.len, "sbx_", 8001, &c));
    must(!look(text.data, text.len - 1, SANDBOX, 8001, &c));
    size_t at = size ? data[size - 1] % text.len : 0;
    text.data[at] ^= size > 1 && data[0] ? data[0] : 1;
    must(!look(text.data, text.len, SANDBOX, 8001, &c));
    text.data[at] ^= size > 1 && data[0] ? data[0] : 1;
    buf_addc(&text, size ? (char)data[0] : 'A');
    must(!look(text.data, text.len, SANDBOX, 8001, &c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct link_claim c;
    if (look((const char *)data, size, SANDBOX, 8001, &c)) { /* of the corpus: ours */
        AUTO_BUF again = BUF_INIT;
        link_write(&secret, &c, &again);
        must(again.len == size && memcmp(again.data, data, size) == 0);
    }
    write_one(data, size);
    return 0;
}
