/* Which part of a form is the file, and what a form without one is told. */

#include "api/files/form_file.h"

#include "api/core/call.h"

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
    AUTO_BUF json = BUF_INIT;
    struct jw j = JW_INIT(&json);
    jw_object(&j);
    jw_key(&j, "detail");
    jw_array(&j);
    jw_object(&j);
    jw_key_str(&j, "type", plain ? "value_error" : "missing");
    jw_key(&j, "loc");
    jw_raw(&j, "[\"body\",\"file\"]", 15);
    jw_key_str(&j, "msg",
               plain ? "Value error, Expected UploadFile, received: <class 'str'>"
                     : "Field required");
    jw_key_str(&j, "input", plain ? f->text : NULL);
    if (plain) {
        jw_key(&j, "ctx");
        jw_raw(&j, "{\"error\":{}}", 12);
    }
    jw_object_end(&j);
    jw_array_end(&j);
    jw_object_end(&j);
    call_add_error(&json, 422);
    call_json(c, 422, &json);
}
