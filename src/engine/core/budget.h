#pragma once
/* The machine's memory: how much of it the guests of all sandboxes together may have. */

#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct guest;
struct input_file;
struct sandbox;
struct wire_in;

/* Adds the inputs to `files`, and refuses what will never fit. */
int budget_check(const struct engine *g, const struct limits *l, const struct input_file *inputs,
                 unsigned n, uint64_t *files, struct err *e);
bool budget_lets(struct engine *g, const struct limits *l, uint64_t files_bytes);
/* Whether its tenant would have more than an equal share of the memory with it. */
bool budget_is_greedy(const struct engine *g, const struct guest *who, unsigned tenants);
void budget_take(struct sandbox *s, const struct guest *who);
/* Its files are there: from now on it counts with those that still are. For live sandboxes. */
void budget_staged(struct sandbox *s);
/* The same for one from an earlier server: all files that it has may be that one's. */
void budget_inherit(struct sandbox *s, const struct guest *who);
/* Whether the server may write so much onto disks of sandboxes; kind "memory_budget". */
int budget_fits(struct engine *g, uint64_t bytes, struct err *e);
/* Before each step of it. */
int budget_write(struct sandbox *s, uint64_t bytes, struct err *e);
/* Its program is over: until it is gone it counts with the most that it had. */
void budget_settle(struct sandbox *s);
void budget_give(struct sandbox *s);
/* W_STRANDED: what sandboxes that are gone have left in the hands of others. */
void budget_stranded(struct engine *g, struct wire_in *in);
