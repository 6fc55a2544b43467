// Servers that are hostile or broken: code goes nowhere else, nothing goes on for ever, and what is
// wrong is an error of ours.

import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { BadReplyError, ClocheError, Client, ConnectionLostError } from "cloche";

// Answers as it is told, and keeps what it was asked.
async function startHostile(t, answer) {
    const asked = [];
    const server = http.createServer((request, reply) => {
        request.resume();
        request.on("end", () => {
            asked.push(`${request.method} ${request.url}`);
            answer(request, reply);
        });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    const baseUrl = `http://127.0.0.1:${server.address().port}`;
    const client = new Client({ baseUrl, apiKey: "clk_secret", patienceMs: 500, reconnectMs: 500 });
    return { client, asked, baseUrl };
}

const event = (seq, kind, data) => `${JSON.stringify({ seq, event: kind, data })}\n`;
const stream = (text) => (_, reply) =>
    reply.writeHead(200, { "x-execution-id": "exe_1", "x-request-id": "req_1" }).end(text);

test("a redirect is not followed", async (t) => {
    const other = await startHostile(t, (_, reply) => reply.end("{}"));
    const moved = await startHostile(t, (_, reply) =>
        reply.writeHead(307, { location: `${other.baseUrl}/elsewhere` }).end(),
    );
    await assert.rejects(moved.client.run("'secret'"), BadReplyError);
    assert.deepEqual(other.asked, []);
    assert.deepEqual(moved.asked, ["POST /v1/run"]);
});

for (const [what, text] of Object.entries({
    "no number": event(undefined, "stdout", { data: "x" }),
    "a number that is none": event("9", "stdout", { data: "x" }),
    "a list": "[]\n",
    "null": "null\n",
    "something deep": `${"[".repeat(100_000)}\n`,
})) {
    test(`a stream with ${what}`, async (t) => {
        const { client, asked } = await startHostile(t, stream(text));
        await assert.rejects(client.run("1"), BadReplyError);
        assert.equal(asked.length, 1);
    });
}

test("the same events again and again", async (t) => {
    const text = event(1, "start", { id: "exe_1" }) + event(2, "stdout", { data: "x" });
    const { client, asked } = await startHostile(t, stream(text));
    await assert.rejects(client.run("1"), ConnectionLostError);
    assert.ok(asked.length < 20);
});

test("events without data", async (t) => {
    const text = `${event(1, "display", 5)}${event(2, "result")}${event(3, "end", { status: "ok" })}`;
    const { client } = await startHostile(t, stream(text));
    const result = await client.run("1");
    assert.deepEqual(
        result.results.map(({ text }) => text),
        [undefined, undefined],
    );
});

for (const [what, body] of Object.entries({
    "a number": "5",
    "null": "null",
    "other members": '{"files": 5, "profiles": {}}',
    "something deep": "[".repeat(200_000),
    "a failure of no kind": '{"error": {"code": [], "message": {}}}',
})) {
    test(`a reply that is ${what}`, async (t) => {
        const { client } = await startHostile(t, (_, reply) => reply.end(body));
        await assert.rejects(client.files.list().toArray(), ClocheError);
        await assert.rejects(client.profiles(), ClocheError);
    });
}

test("a reply without end", async (t) => {
    const piece = Buffer.alloc(1 << 20, " ");
    const { client } = await startHostile(t, (_, reply) => {
        const more = () => {
            while (!reply.destroyed) if (!reply.write(piece)) return;
        };
        reply.on("drain", more);
        more();
    });
    await assert.rejects(client.info(), /has more than/);
});

test("a list whose pages never end", async (t) => {
    const page = { files: [{ file_id: "x" }], next: "same" };
    const { client } = await startHostile(t, (_, reply) => reply.end(JSON.stringify(page)));
    assert.equal((await client.files.list().toArray()).length, 2);
});
