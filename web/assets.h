/*
 * The pages for browsers, compiled into the program: no file to install, none to be missing.
 *
 * embed.py makes web_assets.c at build time. Entries live as long as the program. Scripts and
 * styles are below /assets/, the pages at / and /docs.
 */
#pragma once

#include <stddef.h>

struct web_asset {
    const char *path; /* as in a request, no query */
    const char *type; /* Content-Type */
    const unsigned char *data;
    size_t len;
};

extern const struct web_asset web_assets[];
extern const size_t web_assets_n;
