#pragma once
/* Profiles for people, on stdout. */

struct json_t;

/* A line of a list. */
void print_line(const char *name, const struct json_t *record);
/* profile.json. */
void print_record(const char *name, const struct json_t *record);
/* What try_out found. */
void print_costs(const struct json_t *costs);
