/* See request_fields.h. */

#include "api/jobs/request_fields.h"

const char *const on_disconnect_words[] = {"interrupt", "continue", NULL};
const char *const figure_formats[] = {"png", "retina", "jpeg", "svg", "pdf", NULL};
