#pragma once
/* The locale in which libarchive is called. For pack/ only. */

#include <locale.h>

/* libarchive asks the locale what file names are written in. Ours are bytes, mostly UTF-8; the
 * process itself stays in its own locale. */
locale_t pack_locale_enter(void);
void pack_locale_leave(locale_t *old);
#define PACK_LOCALE                                                                                \
    __attribute__((cleanup(pack_locale_leave), unused)) locale_t old_locale = pack_locale_enter()
