#pragma once
/* Whether bytes of a program may go out yet: see check.c. */

#include "usher/internal.h"

enum check_result { CHECK_GO_ON, CHECK_WAIT, CHECK_END };
/* CHECK_GO_ON: at most *most bytes of what waits, of which nothing is taken yet. */
enum check_result check_look(struct usher *u, struct relay *r, size_t *most);
/* So many went. */
void check_passed(struct relay *r, size_t n);
void check_decided(struct usher *u, struct relay *r);
/* 0: none. */
void check_set_deadline(struct usher *u, struct relay *r, uint64_t at_ms);
void check_done(struct usher *u, struct relay *r);
