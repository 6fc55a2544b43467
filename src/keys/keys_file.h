#pragma once
/* The file of keys. Who changes it holds keys_lock from before reading it until it is written. */

#include "keys/keys.h"

/* A missing file is an empty list with *ret_there false; otherwise as keys_parse. */
int keys_read(int dir_fd, const char *name, struct keys *ret, bool *ret_there, struct err *e);

/* Waits until nobody else changes the file; closing *ret_fd lets the next one go on. */
int keys_lock(int dir_fd, const char *name, int *ret_fd, struct err *e);
/* Under keys_lock: writes another file and renames it, so that a reader finds the old list or the
 * new one. Mode 0640, with the owner and group of the file that it replaces; a new file of root's
 * gets the group of the user cloche, as whom the server runs. */
int keys_write(int dir_fd, const char *name, const struct keys *k, struct err *e);
