#pragma once
/* How an execution ended, as the API has it; in its on_done. */

#include "base/buf.h"
#include "base/schema.h"
#include "engine/core/outcome.h"

struct cell;
struct rope;

/* The data of its events, besides text (utf8_stream_schema), an exception and its end. */
extern const struct schema cell_start_schema, cell_clear_schema, cell_input_schema,
    cell_main_schema, cell_display_schema;

/* In on_done: the result without what its events have told, its output and results; and all of it,
 * which is taken from the cell. */
extern const struct schema cell_end_schema, cell_result_schema;
void cell_end_json(const struct cell *c, struct buf *to);
void cell_result(struct cell *c, struct rope *to);
struct receipt cell_receipt(const struct cell *c);
/* The same in short: the JSON has the names of all files that it made. */
const struct outcome *cell_outcome(const struct cell *c);
uint64_t cell_execution_count(const struct cell *c);
