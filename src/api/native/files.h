#pragma once
/* The file store over HTTP: what its files share. */

#include "base/schema.h"

struct jw;
struct store_entry;

/* Id, name and size of a stored file: the members that files_put_entry writes. */
extern const struct schema files_entry_schema;
void files_put_entry(struct jw *j, const struct store_entry *e);
