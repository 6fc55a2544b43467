/* Any bytes as a server's answer, whole and cut into pieces, whose sizes the first byte chooses:
 * what is found does not depend on the pieces. And no field of the head holds what could end a line
 * when it is written again. */

#include "http/answer.h"
#include "http/chars.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
    unsigned heads;
    size_t bytes;
    uint32_t sum; /* of the body */
};

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool has_control(const char *s) {
    while (*s && !char_is_control(*s))
        s++;
    return *s != '\0';
}

static void heard_head(void *arg, const struct answer *a) {
    struct heard *h = arg;
    h->heads++;
    must(a->status == 101 || (a->status >= 200 && a->status <= 599));
    must(a->nfields <= ANSWER_FIELDS && a->head.len <= ANSWER_HEAD_MAX);
    for (unsigned i = 0; i < a->nfields; i++) {
        must(*a->fields[i].name && !has_control(a->fields[i].value));
        for (const char *c = a->fields[i].name; *c; c++)
            must(char_is_token(*c));
    }
}

static void heard_data(void *arg, const char *data, size_t len) {
    struct heard *h = arg;
    must(h->heads == 1 && len > 0);
    h->bytes += len;
    for (size_t i = 0; i < len; i++)
        h->sum = h->sum * 31 + (unsigned char)data[i];
}

/* How many bytes belonged to the answer. */
static size_t hear(struct answer *a, struct heard *h, uint8_t how, const char *text, size_t size,
                   size_t step) {
    size_t used = 0;
    a->arg = h;
    a->on_head = heard_head;
    a->on_data = heard_data;
    a->to_head = how & 64;
    a->may_switch = how & 128;
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step, took = answer_add(a, text + at, n);
        must(took == n || a->state > ANSWER_BODY);
        used += took;
    }
    answer_end(a);
    must(a->state > ANSWER_BODY && (a->wrong != NULL) == (a->state == ANSWER_WRONG));
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct answer whole = ANSWER_INIT, cut = ANSWER_INIT;
    struct heard a = {0}, b = {0};
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 1;
    size_t step = 1u + data[0] % 32;
    size_t used = hear(&whole, &a, data[0], text, size - 1, size - 1);
    size_t again = hear(&cut, &b, data[0], text, size - 1, step);
    must(whole.state == cut.state && whole.status == cut.status && whole.wrong == cut.wrong);
    must(a.heads == b.heads && a.bytes == b.bytes && a.sum == b.sum);
    must(used == again && a.bytes <= used);
    answer_done(&whole);
    answer_done(&cut);
    return 0;
}
