/* See ask.h. SECURITY: a state is a text that any client may send: it counts only with our MAC over
 * its call (who asks, what is called with which arguments), and once. */

#include "mcp/ask.h"

#include "mcp/internal.h"
#include "mcp/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE    "state"
#define ANSWER "answer"

/* ---- answered ---- */

/* The handler goes on. */
static void ask_over(struct mcp_call *c) {
    mcp_answered *fn = c->asking.fn;
    json_t *answers = c->asking.answers;
    c->asking.answers = NULL;
    ask_end(c);
    fn(c, answers);
    json_decref(answers);
}

static void ask_on_late(struct timer *t) {
    ask_over(t->arg);
}

void ask_end(struct mcp_call *c) {
    struct asking *a = &c->asking;
    loop_timer_stop(c->m->host.loop, &a->late);
    json_decref(a->wanted);
    json_decref(a->answers);
    a->wanted = a->answers = NULL;
    a->is_parked = false;
}

/* What is wanted and not yet answered. */
static unsigned ask_left(const struct asking *a) {
    const char *key;
    json_t *one;
    unsigned n = 0;
    json_object_foreach(a->wanted, key, one) {
        n += json_object_get(a->answers, key) == NULL;
    }
    return n;
}

static void ask_take(struct asking *a, const json_t *responses) {
    const char *key;
    json_t *one;
    json_object_foreach(a->wanted, key, one) {
        json_t *answer = json_object_get(responses, key);
        if (json_is_object(answer))
            json_object_set(a->answers, key, answer);
    }
}

/* ---- the state of a modern call ---- */

/* What the call is, whoever repeats it. */
static void call_digest(const struct mcp_call *c, char ret[TOKEN_DIGEST + 1]) {
    json_t *what = json_pack(
        "{s:o?, s:O?, s:O?, s:O?}", "method", json_incref(json_object_get(c->message, "method")),
        "name", json_object_get(c->params, "name"), "uri", json_object_get(c->params, "uri"),
        "arguments", json_object_get(c->params, "arguments"));
    char *text = json_dumps(what, JSON_COMPACT | JSON_SORT_KEYS);
    token_digest(text ? text : "", text ? strlen(text) : 0, ret);
    free(text);
    json_decref(what);
}

static void put_state(const struct mcp_call *c, struct jw *j) {
    char digest[TOKEN_DIGEST + 1], claim[ID_MAX + TOKEN_DIGEST + 2], state[TOKEN_MAX];
    call_digest(c, digest);
    snprintf(claim, sizeof claim, "%s-%s", c->asking.nonce, digest);
    token_write(c->m->host.secret, USE, c->who->owner, claim, state, sizeof state);
    jw_key_str(j, "requestState", state);
}

static void put_requests(const struct asking *a, struct jw *j) {
    const char *key;
    json_t *one;
    jw_key(j, "inputRequests");
    jw_object(j);
    json_object_foreach(a->wanted, key, one) {
        if (json_object_get(a->answers, key))
            continue;
        jw_key(j, key);
        jw_json(j, one, "{}");
    }
    jw_object_end(j);
}

/* The oldest of too many gets no answer. */
static void ask_make_room(const struct mcp_call *c) {
    struct mcp_call *oldest = NULL;
    unsigned n = 0;
    for (struct mcp_call *other = c->m->calls; other; other = other->next) {
        if (other == c || !other->asking.is_parked || strcmp(other->who->owner, c->who->owner) != 0)
            continue;
        n++;
        oldest = other;
    }
    if (n >= ASK_PARKED)
        ask_over(oldest);
}

/* The request is answered with the questions; the call stays. */
static void ask_park(struct mcp_call *c) {
    AUTO_BUF text = BUF_INIT;
    struct jw j = JW_INIT(&text);
    struct stream *to = c->to;
    rpc_begin_response(&j, c->id);
    jw_key(&j, "result");
    jw_object(&j);
    jw_key_str(&j, "resultType", "input_required");
    put_requests(&c->asking, &j);
    put_state(c, &j);
    jw_key(&j, "_meta");
    jw_object(&j);
    jw_key(&j, META_SERVER);
    list_put_server(c->m, &j);
    jw_object_end(&j);
    jw_object_end(&j);
    rpc_end(&j);
    c->asking.is_parked = true;
    c->to = NULL;
    ask_make_room(c);
    stream_answer(to, 200, &text);
}

/* ---- a legacy client ---- */

static void ask_send(struct mcp_call *c) {
    const char *key;
    json_t *one;
    unsigned i = 0;
    json_object_foreach(c->asking.wanted, key, one) {
        AUTO_BUF text = BUF_INIT;
        struct jw j = JW_INIT(&text);
        char id[ID_MAX + 12];
        snprintf(id, sizeof id, "%s-%u", c->asking.nonce, i++);
        rpc_begin_request(&j, id, json_string_value(json_object_get(one, "method")));
        jw_key(&j, "params");
        jw_json(&j, json_object_get(one, "params"), "{}");
        rpc_end(&j);
        call_send(c, &text);
    }
}

/* Which of the questions of this call the id names; or NULL. */
static const char *ask_key(const struct asking *a, const char *id) {
    size_t n = strlen(a->nonce);
    const char *key;
    json_t *one;
    unsigned i = 0;
    if (!a->wanted || a->is_parked || n == 0 || strncmp(id, a->nonce, n) != 0 || id[n] != '-')
        return NULL;
    json_object_foreach(a->wanted, key, one) {
        char number[12];
        snprintf(number, sizeof number, "%u", i++);
        if (strcmp(id + n + 1, number) == 0)
            return key;
    }
    return NULL;
}

void ask_response(struct visit *v, const struct rpc *r) {
    const char *id = json_string_value(r->id);
    for (struct mcp_call *c = v->m->calls; id && c; c = c->next) {
        const char *key =
            strcmp(c->who->owner, v->who->owner) == 0 ? ask_key(&c->asking, id) : NULL;
        if (!key)
            continue;
        if (r->result)
            json_object_set(c->asking.answers, key, r->result);
        else
            json_object_del(c->asking.wanted, key); /* it cannot, or will not */
        if (ask_left(&c->asking) == 0)
            ask_over(c);
        return;
    }
}

/* ---- asked ---- */

static void ask_want(struct mcp_call *c, const struct mcp_question *q) {
    struct asking *a = &c->asking;
    struct json_t *params = NULL;
    struct err e;
    if (!(c->can & era_can_for(q->method)))
        return;
    if (json_read(q->params, strlen(q->params), JSON_DEPTH_MAX, &params, &e) < 0)
        params = json_object();
    json_object_set_new(a->wanted, q->key,
                        json_pack("{s:s, s:o}", "method", q->method, "params", params));
}

static bool may_ask(const struct mcp_call *c) {
    bool right = c->kind == CALL_TOOL || c->kind == CALL_READ || c->kind == CALL_PROMPT;
    if (!right || !c->to || c->is_cancelled)
        return false;
    return c->is_modern ? c->length <= ASK_LENGTH : stream_open(c->to);
}

void mcp_ask(struct mcp_call *c, const struct mcp_question *q, unsigned n, mcp_answered *fn) {
    struct asking *a = &c->asking;
    struct loop *l = c->m->host.loop;
    ask_end(c);
    a->fn = fn;
    a->wanted = json_object();
    a->answers = json_object();
    a->late = (struct timer){.fn = ask_on_late, .arg = c};
    id_make("q", a->nonce, sizeof a->nonce);
    for (unsigned i = 0; i < n && i < ASK_QUESTIONS; i++)
        ask_want(c, &q[i]);
    if (c->is_modern)
        ask_take(a, json_object_get(c->params, "inputResponses"));
    if (ask_left(a) == 0 || !may_ask(c)) {
        loop_timer_in_ms(l, &a->late, 0);
        return;
    }
    loop_timer_in_ms(l, &a->late, ASK_MS);
    if (c->is_modern)
        ask_park(c);
    else
        ask_send(c);
}

/* ---- a modern client comes back ---- */

static void ask_adopt(struct mcp_call *c, struct mcp_call *next) {
    json_t *responses = json_object_get(next->params, "inputResponses");
    c->to = next->to;
    next->to = NULL;
    json_decref(c->message);
    c->message = json_incref(next->message);
    c->id = next->id;
    c->params = next->params;
    c->can = next->can;
    c->length = next->length;
    c->log_level = next->log_level;
    progress_end(c);
    progress_begin(c);
    ask_take(&c->asking, responses);
}

/* Which parked call the state names; *ret_right: it is one of ours, for this very call. */
static struct mcp_call *ask_find(const struct mcp_call *next, const char *state, bool *ret_right) {
    char digest[TOKEN_DIGEST + 1], claim[TOKEN_MAX];
    *ret_right = false;
    if (next->length > 2 * ASK_LENGTH || /* with its answers */
        !token_read(next->m->host.secret, USE, next->who->owner, state, claim, sizeof claim))
        return NULL;
    char *dash = strrchr(claim, '-');
    call_digest(next, digest);
    if (!dash || strcmp(dash + 1, digest) != 0)
        return NULL;
    *ret_right = true;
    *dash = '\0';
    struct mcp_call *c = next->m->calls;
    while (c && (!c->asking.is_parked || strcmp(c->asking.nonce, claim) != 0))
        c = c->next;
    return c;
}

bool ask_resumed(struct mcp_call *next) {
    const char *state = json_string_value(json_object_get(next->params, "requestState"));
    bool right;
    if (!state)
        return false;
    struct mcp_call *c = ask_find(next, state, &right);
    if (!right) {
        call_error(next, 400, RPC_PARAMS, "requestState is not what this server gave for this call",
                   NULL);
    } else if (!c) {
        mcp_answer_errorf(next,
                          "The call that asked this has ended: it waits %d seconds for an "
                          "answer, and takes one. Call the tool again.",
                          ASK_MS / 1000);
    } else {
        ask_adopt(c, next);
        call_drop(next);
        if (ask_left(&c->asking) > 0) {
            id_make("q", c->asking.nonce, sizeof c->asking.nonce);
            ask_park(c);
        } else {
            ask_over(c);
        }
    }
    return true;
}

/* ---- one text ---- */

static void ask_on_text(struct mcp_call *c, const json_t *answers) {
    mcp_told *told = c->asking.told;
    const json_t *answer = json_object_get(answers, ANSWER);
    const char *action = json_string_value(json_object_get(answer, "action"));
    const json_t *text = json_object_get(json_object_get(answer, "content"), ANSWER);
    bool is_told = action && strcmp(action, "accept") == 0;
    told(c, is_told ? json_string_value(text) : NULL);
}

void mcp_ask_text(struct mcp_call *c, const char *message, const char *title, mcp_told *fn) {
    AUTO_BUF params = BUF_INIT;
    struct jw j = JW_INIT(&params);
    jw_object(&j);
    jw_key_str(&j, "message", message);
    jw_key(&j, "requestedSchema");
    jw_object(&j);
    jw_key_str(&j, "type", "object");
    jw_key(&j, "properties");
    jw_object(&j);
    jw_key(&j, ANSWER);
    jw_object(&j);
    jw_key_str(&j, "type", "string");
    jw_key_str(&j, "title", title);
    jw_object_end(&j);
    jw_object_end(&j);
    jw_key(&j, "required");
    jw_raw(&j, "[\"" ANSWER "\"]", sizeof "[\"" ANSWER "\"]" - 1);
    jw_object_end(&j);
    jw_object_end(&j);
    c->asking.told = fn;
    const struct mcp_question q = {
        .key = ANSWER, .method = "elicitation/create", .params = params.data};
    mcp_ask(c, &q, 1, ask_on_text);
}
