#pragma once
/* Profiles that `cloche profile` made (src/profile): a directory for each in the setting
 * profiles_dir, with
 *
 *   profile.json        {"profile": what the configuration file would say, "build": how it was
 *                       made, "installed": what is in it}
 *   requirements.lock   what was installed, for pip
 *   env                 a virtual environment: MADE_PYTHON is the profile's interpreter
 *
 * SECURITY: the directory is the operator's alone: what a profile says is believed (it can show any
 * path), and its tree is mounted by root. So it is not below the state directory, which the server
 * can write to. */

#include "base/err.h"

#define MADE_FILE   "profile.json"
#define MADE_LOCK   "requirements.lock"
#define MADE_ENV    "env"
#define MADE_PYTHON MADE_ENV "/bin/python3"

struct json_t;

/* An object with the definition of each, by name; the caller's reference. A directory that is not
 * there has none. */
int made_read(const char *dir, struct json_t **ret, struct err *e);
/* The whole of one's file; the caller's reference. Kind "unknown_profile" when there is none. */
int made_read_one(const char *dir, const char *name, struct json_t **ret, struct err *e);
