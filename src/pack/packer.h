#pragma once
/* An archive, out: an entry, its bytes, the next. */

#include "pack/pack.h"

struct packer;
/* `sink` gets what is to be sent, as it comes. */
int packer_new(void (*sink)(void *arg, const void *data, size_t len), void *arg,
               struct packer **ret, struct err *e);
int packer_entry(struct packer *p, const struct pack_entry *f, struct err *e);
/* Of the last entry; never more than its size. */
int packer_data(struct packer *p, const void *data, size_t len, struct err *e);
int packer_end(struct packer *p, struct err *e);
void packer_free(struct packer *p);
