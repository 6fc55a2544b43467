#pragma once
/* What the API stands on: all of it is borrowed. */

struct engine;
struct loop;
struct store;

struct api_options {
    struct loop *loop;
    struct engine *engine;
    struct store *store;
    int audit_dir; /* where the audit log is */
    int keys_dir;  /* where the file of keys is */
    int state_dir;
    int trees_dir; /* where profiles of tenants are */
};
