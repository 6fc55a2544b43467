/* See pack_locale.h. */

#include "pack/pack_locale.h"

locale_t pack_locale_enter(void) {
    static locale_t utf8; /* made once */
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return uselocale(utf8); /* nothing changes where there is none */
}

void pack_locale_leave(locale_t *old) {
    uselocale(*old);
}
