#pragma once
/* The HTTP API: one file per resource, over the engine and the store. */

#include "engine/core/engine.h"
#include "engine/store/store.h"
#include "http/http.h"

struct api;

struct api_options {
    struct loop *loop;     /* borrowed */
    struct engine *engine; /* borrowed */
    struct store *store;   /* borrowed */
    int state_dir;         /* borrowed */
    int audit_dir;         /* borrowed: where the audit log is */
    int keys_dir;          /* borrowed: where the file of keys is */
};

int api_new(const struct api_options *o, struct api **ret, struct err *e);
/* Takes a listening socket. */
int api_listen(struct api *a, int *fd, struct err *e);
/* Reads the file of keys again; on failure those that are known stay. */
int api_reload(struct api *a, struct err *e);
/* No new connections; `done` is called when the last request is answered, or the time is up. */
void api_drain(struct api *a, uint32_t within_ms, void (*done)(void *arg), void *arg);
