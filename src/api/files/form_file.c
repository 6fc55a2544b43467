/* Which part of a form is the file, and what a form without one is told. */

#include "api/files/form_file.h"

#include "api/core/call.h"
#include "http/field_fault.h"

#include <jansson.h>
#include <string.h>

static const struct field upload_fields[] = {
    {.name = "file",
     .type = FIELD_STRING,
     .flags = FIELD_REQUIRED | FIELD_FILE,
     .help = "the file, with its name"},
};
const struct schema upload_schema = {"UploadForm", upload_fields, 1, true};

bool form_file_is(struct form_file *f, const struct form_part *p) {
    if (strcmp(p->name, "file") != 0)
        return false;
    f->over |= f->there && p->first;
    if (f->over)
        return false;
    if (!p->filename) {
        f->plain = true;
        size_t have = strlen(f->text), room = sizeof f->text - 1 - have;
        memcpy(f->text + have, p->data, p->len < room ? p->len : room);
        return false;
    }
    f->there = true;
    return true;
}

void form_file_missing(struct call *c, const struct form_file *f) {
    bool plain = f && f->plain;
    json_auto_t *text = plain ? json_string_nocheck(f->text) : NULL;
    const struct field_fault no_file = {"missing", "Field required", json_null(), NULL};
    const struct field_fault no_upload = {
        "value_error", "Value error, Expected UploadFile, received: <class 'str'>", text,
        "{\"error\":{}}"};
    call_fault(c, "body", "file", plain ? &no_upload : &no_file);
}
