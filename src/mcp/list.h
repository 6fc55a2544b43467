#pragma once
/* What a client is told of a server: its name and capabilities, its tools, resources, templates and
 * prompts; declared in internal.h. Whatever depends on who asks is for private caches only. */

#define LIST_TTL_MS 300000 /* how long a client may keep a list of tools, templates or prompts */
