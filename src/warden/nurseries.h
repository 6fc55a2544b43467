#pragma once
/* The nurseries, one per profile: see nurseries.c. */

#include "warden/warden.h"

int nurseries_add(struct warden *w, unsigned profile, struct err *e);
/* The same for a profile of live kernels, once its twin needs the cores no more; nothing else waits
 * for it. Until then it has no nursery. */
void nurseries_add_live(struct warden *w, unsigned profile);
/* Another one takes over. */
void nurseries_retire(struct warden *w, struct nursery_child *n);
/* One of its sandboxes has ended; a retired nursery exits after its last. */
void nurseries_left(struct warden *w, struct nursery_child *n);
void nurseries_free(struct warden *w);
bool nurseries_reaped(struct warden *w, pid_t pid, int status);
/* The sandbox of this slot will not come: the server is told, once. */
void nurseries_failed(struct warden *w, struct slot *s, const char *why);
