/* Tools, resources and prompts of the suite that ask nothing. */

#include "fixture.h"

#include "base/buf.h"
#include "http/fields.h"
#include "mcp/server.h"

#include <stdlib.h>
#include <string.h>

#define STEP_MS 50
#define WAV     "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="

struct step {
    struct timer timer;
    mcp_handler *next;
    unsigned n;
};

static void step_on_time(struct timer *t) {
    struct mcp_call *c = t->arg;
    struct step *s = mcp_kept(c);
    s->n++;
    s->next(c);
}

static void step_free(void *state) {
    struct step *s = state;
    loop_timer_stop(fixture_loop, &s->timer);
    free(s);
}

static unsigned step_of(const struct mcp_call *c) {
    const struct step *s = mcp_kept(c);
    return s ? s->n : 0;
}

void fixture_later(struct mcp_call *c, mcp_handler *next) {
    struct step *s = mcp_kept(c);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        mcp_keep(c, s, step_free);
    }
    s->next = next;
    s->timer.fn = step_on_time;
    s->timer.arg = c;
    loop_timer_in_ms(fixture_loop, &s->timer, STEP_MS);
}

/* ---- tools ---- */

static void call_text(struct mcp_call *c) {
    mcp_textf(c, "This is a simple text response for testing.");
    mcp_answer(c);
}
const struct mcp_tool fixture_text = {
    .name = "test_simple_text", .description = "a text", .call = call_text};

static void call_image(struct mcp_call *c) {
    mcp_image(c, "image/png", FIXTURE_PNG, strlen(FIXTURE_PNG));
    mcp_answer(c);
}
const struct mcp_tool fixture_image = {
    .name = "test_image_content", .description = "an image", .call = call_image};

static void call_audio(struct mcp_call *c) {
    mcp_audio(c, "audio/wav", WAV, strlen(WAV));
    mcp_answer(c);
}
const struct mcp_tool fixture_audio = {
    .name = "test_audio_content", .description = "a sound", .call = call_audio};

static void embed(struct mcp_call *c, const char *uri, const char *mime, const char *text) {
    mcp_embed_text(c, uri, mime, text, strlen(text));
}

static void call_embedded(struct mcp_call *c) {
    embed(c, "test://embedded-resource", "text/plain", "This is an embedded resource content.");
    mcp_answer(c);
}
const struct mcp_tool fixture_embedded = {
    .name = "test_embedded_resource", .description = "a resource", .call = call_embedded};

static void call_mixed(struct mcp_call *c) {
    mcp_textf(c, "Multiple content types test:");
    mcp_image(c, "image/png", FIXTURE_PNG, strlen(FIXTURE_PNG));
    embed(c, "test://mixed-content-resource", "application/json",
          "{\"test\":\"data\",\"value\":123}");
    mcp_answer(c);
}
const struct mcp_tool fixture_mixed = {
    .name = "test_multiple_content_types", .description = "all kinds", .call = call_mixed};

static void call_logging(struct mcp_call *c) {
    static const char *const said[] = {"\"Tool execution started\"", "\"Tool processing data\"",
                                       "\"Tool execution completed\""};
    unsigned n = step_of(c);
    mcp_log(c, "info", NULL, said[n]);
    if (n < 2) {
        fixture_later(c, call_logging);
        return;
    }
    mcp_textf(c, "Logged three times.");
    mcp_answer(c);
}
const struct mcp_tool fixture_logging = {
    .name = "test_tool_with_logging", .description = "logs", .call = call_logging};
const struct mcp_tool fixture_logging_tool = {
    .name = "test_logging_tool", .description = "logs", .call = call_logging};

static void call_progress(struct mcp_call *c) {
    unsigned n = step_of(c);
    mcp_progress(c, 50.0 * n, 100, NULL);
    if (n < 2) {
        fixture_later(c, call_progress);
        return;
    }
    mcp_textf(c, "Done: 100 of 100.");
    mcp_answer(c);
}
const struct mcp_tool fixture_progress = {
    .name = "test_tool_with_progress", .description = "progress", .call = call_progress};

static void call_error(struct mcp_call *c) {
    mcp_answer_errorf(c, "This tool intentionally returns an error for testing");
}
const struct mcp_tool fixture_error = {
    .name = "test_error_handling", .description = "an error", .call = call_error};

static void call_reconnected(struct mcp_call *c) {
    mcp_textf(c, "Reconnection test completed.");
    mcp_answer(c);
}
static void call_reconnection(struct mcp_call *c) {
    mcp_break(c, 100);
    fixture_later(c, call_reconnected);
}
const struct mcp_tool fixture_reconnection = {
    .name = "test_reconnection", .description = "hangs up", .call = call_reconnection};

static void call_tool_change(struct mcp_call *c) {
    mcp_changed(fixture_server, MCP_TOOLS);
    mcp_textf(c, "changed");
    mcp_answer(c);
}
const struct mcp_tool fixture_tool_change = {
    .name = "test_trigger_tool_change", .description = "tools change", .call = call_tool_change};

static void call_prompt_change(struct mcp_call *c) {
    mcp_changed(fixture_server, MCP_PROMPTS);
    mcp_textf(c, "changed");
    mcp_answer(c);
}
const struct mcp_tool fixture_prompt_change = {.name = "test_trigger_prompt_change",
                                               .description = "prompts change",
                                               .call = call_prompt_change};

const struct mcp_tool fixture_schema = {
    .name = "json_schema_2020_12_tool",
    .description = "Tool with JSON Schema 2020-12 features",
    .takes_json =
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
        "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
        "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
        "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
        "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
        "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
        "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
        "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
        "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
        "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}",
    .call = call_text};

static void call_header(struct mcp_call *c) {
    mcp_textf(c, "region: %s", field_str(mcp_args(c), "region", ""));
    mcp_answer(c);
}
const struct mcp_tool fixture_header = {
    .name = "test_custom_header",
    .description = "an argument that is in a header as well",
    .takes_json = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
                  "\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}",
    .call = call_header};

/* ---- resources ---- */

static void contents(struct mcp_call *c, const char *mime, const char *text) {
    mcp_contents_text(c, mcp_uri(c), mime, text, strlen(text));
    mcp_answer(c);
}

static void read_text(struct mcp_call *c) {
    contents(c, "text/plain", "This is the content of the static text resource.");
}
static const struct mcp_resource text_resource = {.uri = "test://static-text",
                                                  .name = "static-text",
                                                  .description = "a text",
                                                  .mime = "text/plain",
                                                  .read = read_text};

static void read_binary(struct mcp_call *c) {
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    mcp_contents_blob(c, mcp_uri(c), "image/png", png, sizeof png);
    mcp_answer(c);
}
static const struct mcp_resource binary_resource = {.uri = "test://static-binary",
                                                    .name = "static-binary",
                                                    .description = "bytes",
                                                    .mime = "image/png",
                                                    .read = read_binary};

static void read_watched(struct mcp_call *c) {
    contents(c, "text/plain", "Watched.");
}
static const struct mcp_resource watched_resource = {.uri = "test://watched-resource",
                                                     .name = "watched-resource",
                                                     .description = "to subscribe to",
                                                     .mime = "text/plain",
                                                     .read = read_watched};

static void read_template(struct mcp_call *c) {
    AUTO_BUF text = BUF_INIT;
    AUTO_BUF data = BUF_INIT;
    struct jw j = JW_INIT(&text);
    buf_addf(&data, "Data for ID: %s", mcp_variable(c, "id"));
    jw_object(&j);
    jw_key_str(&j, "id", mcp_variable(c, "id"));
    jw_key_bool(&j, "templateTest", true);
    jw_key_str(&j, "data", data.data);
    jw_object_end(&j);
    contents(c, "application/json", text.data);
}
static const struct mcp_template data_template = {.uri = "test://template/{id}/data",
                                                  .name = "template",
                                                  .description = "with an id",
                                                  .mime = "application/json",
                                                  .read = read_template};

/* ---- prompts ---- */

static void get_simple(struct mcp_call *c) {
    mcp_textf(c, "This is a simple prompt for testing.");
    mcp_answer(c);
}
static const struct mcp_prompt simple_prompt = {
    .name = "test_simple_prompt", .description = "a text", .get = get_simple};

static const struct field two_fields[] = {
    HAS("arg1", FIELD_STRING, .help = "First test argument"),
    HAS("arg2", FIELD_STRING, .help = "Second test argument"),
};
static const struct schema two_schema = {SCHEMA("Two", two_fields)};

static void get_arguments(struct mcp_call *c) {
    mcp_textf(c, "Prompt with arguments: arg1='%s', arg2='%s'", field_str(mcp_args(c), "arg1", ""),
              field_str(mcp_args(c), "arg2", ""));
    mcp_answer(c);
}

static void complete_argument(struct mcp_call *c, const char *name, const char *value) {
    static const char *const words[] = {"paris", "park", "party", "testValue1"};
    (void)name;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(words[i], value, strlen(value)) == 0)
            mcp_complete(c, words[i]);
    mcp_answer(c);
}
static const struct mcp_prompt arguments_prompt = {.name = "test_prompt_with_arguments",
                                                   .description = "with arguments",
                                                   .takes = &two_schema,
                                                   .get = get_arguments,
                                                   .complete = complete_argument};

static const struct field uri_fields[] = {
    HAS("resourceUri", FIELD_STRING, .help = "what to embed")};
static const struct schema uri_schema = {SCHEMA("Uri", uri_fields)};

static void get_embedded(struct mcp_call *c) {
    mcp_message(c, "user");
    embed(c, field_str(mcp_args(c), "resourceUri", ""), "text/plain",
          "Embedded resource content for testing.");
    mcp_textf(c, "Please process the embedded resource above.");
    mcp_answer(c);
}
static const struct mcp_prompt embedded_prompt = {.name = "test_prompt_with_embedded_resource",
                                                  .description = "with a resource",
                                                  .takes = &uri_schema,
                                                  .get = get_embedded};

static void get_image(struct mcp_call *c) {
    mcp_image(c, "image/png", FIXTURE_PNG, strlen(FIXTURE_PNG));
    mcp_textf(c, "Please analyze the image above.");
    mcp_answer(c);
}
static const struct mcp_prompt image_prompt = {
    .name = "test_prompt_with_image", .description = "with an image", .get = get_image};

/* ---- all of it ---- */

static const struct mcp_tool *const tools[] = {&fixture_text,
                                               &fixture_image,
                                               &fixture_audio,
                                               &fixture_embedded,
                                               &fixture_mixed,
                                               &fixture_logging,
                                               &fixture_logging_tool,
                                               &fixture_progress,
                                               &fixture_error,
                                               &fixture_reconnection,
                                               &fixture_tool_change,
                                               &fixture_prompt_change,
                                               &fixture_schema,
                                               &fixture_header,
                                               &fixture_sampling,
                                               &fixture_elicitation,
                                               &fixture_defaults,
                                               &fixture_enums,
                                               &fixture_streaming,
                                               &fixture_missing,
                                               &fixture_ask_name,
                                               &fixture_ask_model,
                                               &fixture_ask_roots,
                                               &fixture_ask_state,
                                               &fixture_ask_all,
                                               &fixture_ask_twice,
                                               &fixture_ask_tampered,
                                               &fixture_ask_able,
                                               NULL};
static const struct mcp_resource *const resources[] = {&text_resource, &binary_resource,
                                                       &watched_resource, NULL};
static const struct mcp_template *const templates[] = {&data_template, NULL};
static const struct mcp_prompt *const prompts[] = {
    &simple_prompt, &arguments_prompt, &embedded_prompt, &image_prompt, &fixture_ask_prompt, NULL};
const struct mcp_registry fixture_registry = {
    .tools = tools, .resources = resources, .templates = templates, .prompts = prompts};
