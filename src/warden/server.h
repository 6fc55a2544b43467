#pragma once
/* The server as the warden sees it: see server.c. */

#include "warden/warden.h"

int server_start(struct warden *w, struct err *e);
void server_reaped(struct warden *w, int status);
void server_tell_profile(struct warden *w, unsigned profile);
void server_tell_restarts(struct warden *w);
void server_tell_failed(struct warden *w, uint32_t profile, const char *why);
void server_tell_kernel_failed(struct warden *w, uint64_t sandbox, uint32_t number,
                               const char *why);
/* Of a profile that has no nursery. */
enum profile_state server_without_nursery(const struct warden *w, unsigned profile,
                                          const char **ret_why);
