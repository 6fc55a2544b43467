#pragma once
/* Which modules a program imports, and so which profile suits it. Advice only: a wrong answer costs
 * time, never safety or correctness, so this reads the text as a lexer would and understands
 * nothing more. No allocation; any bytes are welcome. */

#include <stddef.h>
#include <stdint.h>

/* What is looked at of one program: imports stand at the top, and the server cannot wait. */
#define IMPORTS_MAX_BYTES (256u << 10)
#define IMPORTS_MAX_NAMES 128

/* Calls `seen` with the top-level name of each module that an import statement names, wherever the
 * statement stands; relative imports are left out. The name points into `code` and has no NUL. */
void imports_scan(const uint8_t *code, size_t len,
                  void (*seen)(void *arg, const char *module, size_t len), void *arg);

#define IMPORTS_MAX_PROFILES 16

/* `modules[k]` are the modules that profile k has ready, separated by spaces; dotted names count
 * with their first part. Profiles stand in the order of preference, smallest first. Returns the
 * first one that has all that the code imports, where a module that no profile has does not count,
 * and a module that the first profile has is taken to be in all. If none has them all, the one that
 * lacks the fewest. 0 if n is 0. */
unsigned imports_choose(const uint8_t *code, size_t len, const char *const *modules, unsigned n);
