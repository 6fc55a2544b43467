#pragma once
/* Keys as `cloche key` prints them; never with their hashes. */

#include "base/buf.h"
#include "keys/keys.h"

void key_print_table(const struct keys *k);
void key_print_json(const struct keys *k);
/* One object with the key's members; the secret comes last, if there is one. */
void key_add_json(struct buf *b, const struct key *k, const char *secret);
