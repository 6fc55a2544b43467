/* Tools and the prompt of the suite that ask the client. */

#include "fixture.h"

#include "base/buf.h"
#include "http/fields.h"

#include <stdlib.h>
#include <string.h>

#define FORM(properties, required)                                                                 \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties                         \
    "},\"required\":[" required "]}}"
#define ELICIT(key_, message, properties, required)                                                \
    {                                                                                              \
        .key = key_, .method = "elicitation/create",                                               \
        .params = "{\"message\":\"" message "\"," FORM(properties, required)                       \
    }
#define SAMPLE(key_, text, tokens)                                                                 \
    {                                                                                              \
        .key = key_, .method = "sampling/createMessage",                                           \
        .params =                                                                                  \
            "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text    \
            "\"}}],\"maxTokens\":" tokens "}"                                                      \
    }
#define ROOTS(key_)                                                                                \
    { .key = key_, .method = "roots/list", .params = "{}" }
#define NAME_FORM "\"name\":{\"type\":\"string\"}"

static void ask(struct mcp_call *c, const struct mcp_question *q, mcp_answered *then) {
    mcp_ask(c, q, 1, then);
}

/* ---- answers as text ---- */

static void answered(struct mcp_call *c, const char *before, const json_t *answer) {
    char *content = json_dumps(json_object_get(answer, "content"), JSON_COMPACT | JSON_ENCODE_ANY);
    mcp_textf(c, "%saction=%s, content=%s", before, field_str(answer, "action", "none"),
              content ? content : "{}");
    free(content);
    mcp_answer(c);
}

static void then_completed(struct mcp_call *c, const json_t *answers) {
    answered(c, "Elicitation completed: ", json_object_get(answers, "form"));
}

static void then_response(struct mcp_call *c, const json_t *answers) {
    answered(c, "User response: ", json_object_get(answers, "form"));
}

static void then_llm(struct mcp_call *c, const json_t *answers) {
    const json_t *content = json_object_get(json_object_get(answers, "llm"), "content");
    mcp_textf(c, "LLM response: %s", field_str(content, "text", ""));
    mcp_answer(c);
}

static void then_done(struct mcp_call *c, const json_t *answers) {
    mcp_textf(c, "state-ok: %zu answers", json_object_size(answers));
    mcp_answer(c);
}

/* ---- as a legacy client is asked ---- */

/* The object of parameters with the text of an argument in it. */
static void put_text(struct buf *to, const char *before, const char *text, const char *after) {
    buf_adds(to, before);
    json_escape(to, text, strlen(text));
    buf_adds(to, after);
}

static const struct field prompt_fields[] = {HAS("prompt", FIELD_STRING)};
static const struct schema prompt_schema = {SCHEMA("Prompt", prompt_fields)};

static void call_sampling(struct mcp_call *c) {
    AUTO_BUF params = BUF_INIT;
    if (!mcp_can(c, "sampling")) {
        mcp_answer_errorf(c, "the client cannot sample");
        return;
    }
    put_text(&params,
             "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"",
             field_str(mcp_args(c), "prompt", ""), "\"}}],\"maxTokens\":100}");
    ask(c,
        &(struct mcp_question){
            .key = "llm", .method = "sampling/createMessage", .params = params.data},
        then_llm);
}
const struct mcp_tool fixture_sampling = {.name = "test_sampling",
                                          .description = "asks a model",
                                          .takes = &prompt_schema,
                                          .call = call_sampling};

static const struct field message_fields[] = {HAS("message", FIELD_STRING)};
static const struct schema message_schema = {SCHEMA("Message", message_fields)};

static void call_elicitation(struct mcp_call *c) {
    AUTO_BUF params = BUF_INIT;
    if (!mcp_can(c, "elicitation")) {
        mcp_answer_errorf(c, "the client cannot ask its user");
        return;
    }
    put_text(&params, "{\"message\":\"", field_str(mcp_args(c), "message", ""),
             "\"," FORM("\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
                        "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}",
                        "\"username\",\"email\""));
    ask(c,
        &(struct mcp_question){
            .key = "form", .method = "elicitation/create", .params = params.data},
        then_response);
}
const struct mcp_tool fixture_elicitation = {.name = "test_elicitation",
                                             .description = "asks the user",
                                             .takes = &message_schema,
                                             .call = call_elicitation};

static void call_defaults(struct mcp_call *c) {
    static const struct mcp_question q =
        ELICIT("form", "Please check these",
               "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
               "\"age\":{\"type\":\"integer\",\"default\":30},"
               "\"score\":{\"type\":\"number\",\"default\":95.5},"
               "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
               "\"default\":\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":true}",
               "");
    ask(c, &q, then_completed);
}
const struct mcp_tool fixture_defaults = {.name = "test_elicitation_sep1034_defaults",
                                          .description = "asks with defaults",
                                          .call = call_defaults};

static void call_enums(struct mcp_call *c) {
    static const struct mcp_question q = ELICIT(
        "form", "Please choose",
        "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
        "\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
        "{\"const\":\"value1\",\"title\":\"First Option\"},"
        "{\"const\":\"value2\",\"title\":\"Second Option\"},"
        "{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
        "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
        "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
        "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
        "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
        "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
        "{\"const\":\"value1\",\"title\":\"First Choice\"},"
        "{\"const\":\"value2\",\"title\":\"Second Choice\"},"
        "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}",
        "");
    ask(c, &q, then_completed);
}
const struct mcp_tool fixture_enums = {.name = "test_elicitation_sep1330_enums",
                                       .description = "asks for a choice",
                                       .call = call_enums};

/* ---- as a modern client is asked ---- */

static void call_missing(struct mcp_call *c) {
    if (mcp_can(c, "sampling")) {
        mcp_textf(c, "the client can sample");
        mcp_answer(c);
    } else {
        mcp_fail_capability(c, "sampling");
    }
}
const struct mcp_tool fixture_missing = {.name = "test_missing_capability",
                                         .description = "needs a client that samples",
                                         .call = call_missing};

static const struct mcp_question name_question =
    ELICIT("user_name", "What is your name?", NAME_FORM, "\"name\"");

static void then_hello(struct mcp_call *c, const json_t *answers) {
    const json_t *content = json_object_get(json_object_get(answers, "user_name"), "content");
    mcp_textf(c, "Hello, %s!", field_str(content, "name", "stranger"));
    mcp_answer(c);
}

static void call_ask_name(struct mcp_call *c) {
    ask(c, &name_question, then_hello);
}
const struct mcp_tool fixture_ask_name = {.name = "test_input_required_result_elicitation",
                                          .description = "asks for a name",
                                          .call = call_ask_name};
const struct mcp_tool fixture_streaming = {
    .name = "test_streaming_elicitation", .description = "asks for a name", .call = call_ask_name};

static void then_capital(struct mcp_call *c, const json_t *answers) {
    const json_t *content =
        json_object_get(json_object_get(answers, "capital_question"), "content");
    mcp_textf(c, "%s", field_str(content, "text", "no answer"));
    mcp_answer(c);
}

static void call_ask_model(struct mcp_call *c) {
    static const struct mcp_question q =
        SAMPLE("capital_question", "What is the capital of France?", "100");
    ask(c, &q, then_capital);
}
const struct mcp_tool fixture_ask_model = {.name = "test_input_required_result_sampling",
                                           .description = "asks a model",
                                           .call = call_ask_model};

static void then_roots(struct mcp_call *c, const json_t *answers) {
    const json_t *roots = json_object_get(json_object_get(answers, "client_roots"), "roots");
    for (size_t i = 0; i < json_array_size(roots); i++)
        mcp_textf(c, "%s\n", field_str(json_array_get(roots, i), "uri", ""));
    mcp_answer(c);
}

static void call_ask_roots(struct mcp_call *c) {
    static const struct mcp_question q = ROOTS("client_roots");
    ask(c, &q, then_roots);
}
const struct mcp_tool fixture_ask_roots = {.name = "test_input_required_result_list_roots",
                                           .description = "asks for roots",
                                           .call = call_ask_roots};

static const struct mcp_question confirm_question =
    ELICIT("confirm", "Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\"");

static void call_ask_state(struct mcp_call *c) {
    ask(c, &confirm_question, then_done);
}
const struct mcp_tool fixture_ask_state = {.name = "test_input_required_result_request_state",
                                           .description = "asks, with a state",
                                           .call = call_ask_state};
const struct mcp_tool fixture_ask_tampered = {.name = "test_input_required_result_tampered_state",
                                              .description = "asks, with a state",
                                              .call = call_ask_state};

static const struct mcp_question all_questions[] = {
    ELICIT("user_name", "What is your name?", NAME_FORM, "\"name\""),
    SAMPLE("greeting", "Generate a greeting", "50"),
    ROOTS("client_roots"),
};

static void call_ask_all(struct mcp_call *c) {
    mcp_ask(c, all_questions, 3, then_done);
}
const struct mcp_tool fixture_ask_all = {.name = "test_input_required_result_multiple_inputs",
                                         .description = "asks three things",
                                         .call = call_ask_all};

/* What the client cannot is not asked for. */
static void call_ask_able(struct mcp_call *c) {
    mcp_ask(c, all_questions, 2, then_done);
}
const struct mcp_tool fixture_ask_able = {.name = "test_input_required_result_capabilities",
                                          .description = "asks what can be answered",
                                          .call = call_ask_able};

static void then_second(struct mcp_call *c, const json_t *answers) {
    static const struct mcp_question q = ELICIT("step2", "Step 2: What is your favorite color?",
                                                "\"color\":{\"type\":\"string\"}", "\"color\"");
    (void)answers;
    ask(c, &q, then_done);
}

static void call_ask_twice(struct mcp_call *c) {
    static const struct mcp_question q =
        ELICIT("step1", "Step 1: What is your name?", NAME_FORM, "\"name\"");
    ask(c, &q, then_second);
}
const struct mcp_tool fixture_ask_twice = {.name = "test_input_required_result_multi_round",
                                           .description = "asks twice",
                                           .call = call_ask_twice};

static void then_prompt(struct mcp_call *c, const json_t *answers) {
    const json_t *content = json_object_get(json_object_get(answers, "user_context"), "content");
    mcp_textf(c, "With the context: %s", field_str(content, "context", "none"));
    mcp_answer(c);
}

static void get_ask_prompt(struct mcp_call *c) {
    static const struct mcp_question q =
        ELICIT("user_context", "What context should the prompt use?",
               "\"context\":{\"type\":\"string\"}", "\"context\"");
    ask(c, &q, then_prompt);
}
const struct mcp_prompt fixture_ask_prompt = {.name = "test_input_required_result_prompt",
                                              .description = "asks for a context",
                                              .get = get_ask_prompt};
