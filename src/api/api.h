#pragma once
/* The HTTP API, over the engine and the store: README.md tells where what is. */

#include "api/core/options.h"
#include "base/err.h"

#include <stdint.h>

struct api;

int api_new(const struct api_options *o, struct api **ret, struct err *e);
/* Takes a listening socket. */
int api_listen(struct api *a, int *fd, struct err *e);
/* Reads the file of keys again; on failure those that are known stay. */
int api_reload(struct api *a, struct err *e);
/* No new connections; `done` is called when the last request is answered, or the time is up. */
void api_drain(struct api *a, uint32_t within_ms, void (*done)(void *arg), void *arg);
