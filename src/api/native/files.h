#pragma once
/* The file store over HTTP: what its files share. */

struct jw;
struct store_entry;

/* Id, name and size of a stored file. */
void files_put_entry(struct jw *j, const struct store_entry *e);
