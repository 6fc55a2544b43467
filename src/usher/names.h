#pragma once
/* Questions for names: see names.c. */

#include "usher/internal.h"

void names_start(struct usher *u);
void names_read(struct usher *u, unsigned index);
void namer_read(struct usher *u, unsigned index);
void names_answer(struct usher *u, const struct u_named *m);
void names_look_after(struct usher *u);
