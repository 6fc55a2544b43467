#pragma once
/* Removing trees that hostile processes change at the same time. */

#include <stdbool.h>

/* 0, or -1 and errno. */
int remove_tree(int dir, const char *name, bool recursive);
