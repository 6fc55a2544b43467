/* See hello_fixture.h. */

#include "hello_fixture.h"

#include <string.h>

void add_number(struct buf *b, unsigned width, size_t n) {
    while (width-- > 0)
        buf_addc(b, (char)(n >> 8 * width));
}

void add_vector(struct buf *b, unsigned width, const struct buf *inside) {
    add_number(b, width, inside->len);
    buf_add(b, inside->data, inside->len);
}

void add_name(struct buf *b, const char *name, size_t len) {
    AUTO_BUF list = BUF_INIT;
    AUTO_BUF extension = BUF_INIT;
    add_number(&list, 1, 0);
    add_number(&list, 2, len);
    buf_add(&list, name, len);
    add_vector(&extension, 2, &list);
    add_number(b, 2, 0);
    add_vector(b, 2, &extension);
}

void add_hello(struct buf *to, const struct buf *extensions, size_t padding) {
    AUTO_BUF body = BUF_INIT;
    AUTO_BUF all = BUF_INIT;
    char zero[2 + 32] = {3, 3};
    buf_add(&body, zero, sizeof zero);
    buf_add(&body, "\0\0\2\x13\1\1\0", 7);
    add_number(&all, 2, 21);
    add_number(&all, 2, padding);
    for (size_t i = 0; i < padding; i++)
        buf_addc(&all, '\0');
    buf_add(&all, extensions->data, extensions->len);
    add_vector(&body, 2, &all);
    buf_addc(to, 1);
    add_vector(to, 3, &body);
}

void add_records(struct buf *to, const struct buf *message, size_t most) {
    for (size_t at = 0; at < message->len; at += most) {
        size_t n = message->len - at < most ? message->len - at : most;
        buf_add(to, "\x16\3\1", 3);
        add_number(to, 2, n);
        buf_add(to, message->data + at, n);
    }
}

void add_good_hello(struct buf *to, const char *name, size_t padding, size_t record) {
    AUTO_BUF extensions = BUF_INIT;
    AUTO_BUF message = BUF_INIT;
    add_name(&extensions, name, strlen(name));
    add_hello(&message, &extensions, padding);
    add_records(to, &message, record);
}
