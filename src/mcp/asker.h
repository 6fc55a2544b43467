#pragma once
/* Who asks, as the protocol needs to know it. Whoever has the endpoint makes one for each request;
 * a call that outlives its request keeps it. The host's own struct begins with it. */

struct mcp_asker {
    /* Whose calls, sessions and states of questions these are: tenant and key. SECURITY: nobody
     * reaches what belongs to another owner. */
    char owner[128];
    unsigned sets; /* of tools: see mcp_tool.sets; 0: all */
    void (*free)(struct mcp_asker *who);
    /* The protocol's: */
    char session[48]; /* the name of the legacy session (letters, digits, -); "" without one */
    unsigned refs;
};
