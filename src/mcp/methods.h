#pragma once
/* The methods of MCP, each with the era in which it is known: a table; declared in internal.h. */
