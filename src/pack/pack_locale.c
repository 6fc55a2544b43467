/* See pack_locale.h. The locale is each thread's own while it packs. */

#include "pack/pack_locale.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t utf8; /* made once, by whoever comes first */

static void make(void) {
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

locale_t pack_locale_enter(void) {
    pthread_once(&once, make);
    return uselocale(utf8); /* nothing changes where there is none */
}

void pack_locale_leave(locale_t *old) {
    uselocale(*old);
}
