#pragma once
/* What `cloche doctor` found, as text for people and as JSON: both say the same. */

#include "cli/doctor_look.h"

void doctor_print_text(const struct doctor_findings *f);
void doctor_print_json(const struct doctor_findings *f);
