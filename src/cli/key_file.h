#pragma once
/* The file of keys, where the server looks for it: the settings `keys` and `state_dir`. */

#include "cli/key_options.h"

struct key_file {
    char *dir, *name; /* owned */
    int fd;           /* owned: the directory; -1 when there is none */
};
#define AUTO_KEY_FILE __attribute__((cleanup(key_file_done))) struct key_file

/* The directory may be missing, unless `make`: then our own is made, and one that was named must be
 * there. */
int key_file_open(const struct key_options *o, bool make, struct key_file *ret, struct err *e);
void key_file_done(struct key_file *p);

int key_file_load(const struct key_file *p, struct keys *ret, bool *ret_there, struct err *e);
/* What was read under *ret_lock may be changed and given to key_file_save. */
int key_file_load_to_change(const struct key_file *p, struct keys *ret, int *ret_lock,
                            struct err *e);
int key_file_save(const struct key_file *p, const struct keys *k, struct err *e);
