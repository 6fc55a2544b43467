#pragma once
/* What an MCP server offers, as tables: tools, resources, prompts. They are only data and handlers;
 * the protocol (server.h) knows nothing else of them. A table lives as long as the server.
 *
 *     static const struct mcp_tool tool = {
 *         .name = "read_file", .title = "Read a file", .description = "…",
 *         .takes = &read_file_schema, .hints = MCP_READ_ONLY | MCP_CLOSED, .call = read_file_call};
 *
 * The handler gets a call (call.h), whose arguments fit `takes`. Names are A-Za-z0-9_.- and at most
 * 128 bytes. Whatever a client reads here is cut by some of them at 2,048 bytes. */

#include "base/buf.h"
#include "base/schema.h"

#include <stdbool.h>

struct mcp_asker;
struct mcp_call;

typedef void mcp_handler(struct mcp_call *c);

/* What clients may show before a call. They are hints, never trusted. */
enum mcp_hint {
    MCP_READ_ONLY = 1,   /* changes nothing */
    MCP_DESTRUCTIVE = 2, /* may delete or overwrite */
    MCP_IDEMPOTENT = 4,  /* the same call once more changes nothing more */
    MCP_CLOSED = 8,      /* has nothing to do with what is outside of the sandbox */
};

struct mcp_tool {
    const char *name, *title, *description;
    const struct schema *takes; /* the object of arguments; NULL: none, or `takes_json` */
    const char *takes_json;     /* instead: a JSON Schema as it is; nothing is checked by it */
    const struct schema *gives; /* of structuredContent (mcp_structured); NULL: there is none */
    unsigned hints;             /* enum mcp_hint */
    unsigned sets;              /* of tools, one bit each: in which it is; 0: in every one */
    bool is_void;               /* an answer without parts has none, instead of an empty text */
    const char *meta;           /* a JSON object for `_meta` in tools/list, or NULL */
    mcp_handler *call;
    /* What depends on who asks: adds to the description; says whether it is offered at all; which
     * hints there are besides. Or NULL. */
    void (*describe)(const struct mcp_asker *who, struct buf *to);
    bool (*is_there)(const struct mcp_asker *who);
    unsigned (*hints_for)(const struct mcp_asker *who);
};

/* One that resources/read names by its URI; `read` answers with mcp_contents_text and _blob. */
struct mcp_resource {
    const char *uri, *name, *title, *description, *mime;
    mcp_handler *read;
};

/* Values for the variable `name` of a template or prompt that begin with `value`: mcp_complete for
 * each, then mcp_answer. */
typedef void mcp_completer(struct mcp_call *c, const char *name, const char *value);

/* URIs with variables: {x} is one part of a path, {+x} the rest of it (uri.h); mcp_variable has the
 * values, decoded. `list` adds those that are there now to resources/list (mcp_listed), which a
 * table cannot know; or NULL. */
struct mcp_template {
    const char *uri, *name, *title, *description, *mime;
    mcp_handler *read;
    mcp_handler *list;
    mcp_completer *complete; /* or NULL */
};

struct mcp_prompt {
    const char *name, *title, *description;
    const struct schema *takes; /* strings; or NULL */
    mcp_handler *get;           /* mcp_message_… and mcp_answer */
    mcp_completer *complete;    /* or NULL */
};

/* Each list ends with NULL, or is NULL. What a client is told in this order. */
struct mcp_registry {
    const struct mcp_tool *const *tools;
    const struct mcp_resource *const *resources;
    const struct mcp_template *const *templates;
    const struct mcp_prompt *const *prompts;
};
