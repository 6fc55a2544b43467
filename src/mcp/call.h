#pragma once
/* A call in progress, as a handler sees it: of a tool, or a resource, prompt or completion.
 *
 * Life: the handler answers at once or later, exactly once, with mcp_answer, mcp_answer_error or
 * mcp_fail; the call is gone after that. It answers in the same way when the call was cancelled
 * (mcp_on_cancel) or nobody listens any more: then nothing is sent. So a handler needs no other way
 * out, and whatever it started ends by an answer. All on the loop; a handler may answer before it
 * returns.
 *
 * Both eras of the protocol, streams, progress, resumption and the caps of what is sent are the
 * protocol's own affair (server.h, content.h): a handler only says what there is. */

#include "mcp/asker.h"
#include "mcp/registry.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp_call;

/* ---- what is asked ---- */
const struct mcp_tool *mcp_tool(const struct mcp_call *c); /* NULL: it is not of a tool */
const json_t *mcp_args(const struct mcp_call *c);          /* an object; as long as the call */
/* A string, number or truth of the arguments, or the fallback: field_str, field_int, field_bool of
 * http/fields.h with mcp_args. */
const char *mcp_uri(const struct mcp_call *c);                        /* of a resource */
const char *mcp_variable(const struct mcp_call *c, const char *name); /* of a template's URI */
struct mcp_asker *mcp_asker(const struct mcp_call *c); /* who asks; as long as the call */
/* What the handler keeps with the call; `done` is called after the answer. */
void mcp_keep(struct mcp_call *c, void *state, void (*done)(void *state));
void *mcp_kept(const struct mcp_call *c);
/* Once, if the client takes the call back: the handler makes what runs end, and answers then. */
void mcp_on_cancel(struct mcp_call *c, mcp_handler *fn);
bool mcp_is_cancelled(const struct mcp_call *c);

/* ---- meanwhile ---- */
/* What it prints, as it comes: its last line is the message of the progress that the client gets
 * every second, at most, and every five, at least. */
void mcp_say(struct mcp_call *c, const char *text, size_t len);
/* Progress by its own measure instead, from now on; total 0: not known; message may be NULL. */
void mcp_progress(struct mcp_call *c, double done, double total, const char *message);
/* notifications/message, where the client wants those. `json` is any JSON. */
void mcp_log(struct mcp_call *c, const char *level, const char *logger, const char *json);

/* A legacy client's connection is closed; it comes back for the rest after so long. */
void mcp_break(struct mcp_call *c, unsigned retry_ms);

/* ---- asking the user ---- */
/* Whether the client can answer: "elicitation", "sampling", "roots". */
bool mcp_can(const struct mcp_call *c, const char *capability);
/* The answer to one question for a text: `text` is NULL when the user declined, cancelled, did not
 * answer in time, or the client has left. */
typedef void mcp_told(struct mcp_call *c, const char *text);
void mcp_ask_text(struct mcp_call *c, const char *message, const char *title, mcp_told *fn);
/* The general form: requests to the client, by keys of our own. `answers` has what came, a result
 * by each key; empty when nobody answers. It is borrowed. One set of questions at a time. */
struct mcp_question {
    const char *key, *method; /* "elicitation/create" */
    const char *params;       /* a JSON object */
};
typedef void mcp_answered(struct mcp_call *c, const json_t *answers);
void mcp_ask(struct mcp_call *c, const struct mcp_question *q, unsigned n, mcp_answered *fn);

/* ---- the answer, part by part ---- */
void mcp_text(struct mcp_call *c, const char *text, size_t len);
void mcp_textf(struct mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* base64 as it is, without white space. */
void mcp_image(struct mcp_call *c, const char *mime, const char *base64, size_t len);
void mcp_image_bytes(struct mcp_call *c, const char *mime, const void *data, size_t len);
void mcp_audio(struct mcp_call *c, const char *mime, const char *base64, size_t len);
struct mcp_link {
    const char *uri, *name;
    const char *title, *description, *mime; /* or NULL */
    int64_t size;                           /* bytes; 0: not told */
};
void mcp_link(struct mcp_call *c, const struct mcp_link *l);
/* A resource within the answer: as text, or as base64 bytes. */
void mcp_embed_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
                    size_t len);
void mcp_embed_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
                    size_t len);
/* Where all of the text is, if the answer's cap cuts it: the link goes out only then. */
void mcp_whole_at(struct mcp_call *c, const struct mcp_link *l);
/* structuredContent, for a tool with `gives`: a JSON object. */
void mcp_structured(struct mcp_call *c, const char *json, size_t len);
/* A member of the result's `_meta`; `json` is any JSON. */
void mcp_meta(struct mcp_call *c, const char *key, const char *json, size_t len);

/* The answer of resources/read: as often as there are contents. */
void mcp_contents_text(struct mcp_call *c, const char *uri, const char *mime, const char *text,
                       size_t len);
void mcp_contents_blob(struct mcp_call *c, const char *uri, const char *mime, const void *data,
                       size_t len);
/* The same of what is the inside of a JSON string already: a text with its escapes, or base64. */
void mcp_contents_inside(struct mcp_call *c, const char *uri, const char *mime, bool is_blob,
                         const struct buf *inside);
/* Of a template's `list`; of a completer; of a prompt, whose parts (mcp_text …) follow its role. */
void mcp_listed(struct mcp_call *c, const struct mcp_link *l);
void mcp_complete(struct mcp_call *c, const char *value);
void mcp_message(struct mcp_call *c, const char *role);

/* ---- the answer goes out; the call is gone ---- */
void mcp_answer(struct mcp_call *c);
/* isError: what the model can mend. What the parts say is the error. */
void mcp_answer_error(struct mcp_call *c);
void mcp_answer_errorf(struct mcp_call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A JSON-RPC error instead: what no model can mend. `data` is JSON or NULL. */
void mcp_fail(struct mcp_call *c, int code, const char *message, const char *data);
void mcp_fail_no_resource(struct mcp_call *c);                        /* -32602, with data.uri */
void mcp_fail_capability(struct mcp_call *c, const char *capability); /* -32021 */
