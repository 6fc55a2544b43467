#pragma once
/* What a store finds in its directory when it opens: whole files are taken into the index, what a
 * crash left behind is removed, whatever else lies there is left alone. */

#include "engine/store/internal.h"

/* Fails when a file may be whole and that cannot be told: rather that than removing it. */
int recover_files(struct store *s, struct err *e);
