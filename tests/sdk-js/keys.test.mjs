// A server that wants keys. CLOCHE_API_KEY is a good one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BadKeyError, Client, NoKeyError } from "cloche";

test("the key of the environment", async () => {
    assert.equal((await new Client().info()).name, "cloche");
});

test("a wrong key says what to do", async () => {
    await assert.rejects(new Client({ apiKey: "clk_wrong" }).info(), (error) => {
        assert.ok(error instanceof BadKeyError);
        assert.match(error.message, /this key is not known: check apiKey or CLOCHE_API_KEY/);
        assert.match(error.requestId, /^req_/);
        return true;
    });
    await assert.rejects(new Client({ apiKey: "clk_wrong" }).sandboxes.create(), BadKeyError);
});

test("no key says what to do", async () => {
    await assert.rejects(new Client({ apiKey: "" }).info(), (error) => {
        assert.ok(error instanceof NoKeyError);
        assert.match(error.message, /wants an API key: give it as apiKey or in CLOCHE_API_KEY/);
        return true;
    });
});
