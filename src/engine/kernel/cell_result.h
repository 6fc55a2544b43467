#pragma once
/* How an execution ended, as the API has it; in its on_done. */

#include "base/buf.h"
#include "engine/core/outcome.h"

struct cell;
struct rope;

/* In on_done: the result without what its events have told, its output and results; and all of it,
 * which is taken from the cell. */
void cell_end_json(const struct cell *c, struct buf *to);
void cell_result(struct cell *c, struct rope *to);
struct receipt cell_receipt(const struct cell *c);
/* The same in short: the JSON has the names of all files that it made. */
const struct outcome *cell_outcome(const struct cell *c);
uint64_t cell_execution_count(const struct cell *c);
