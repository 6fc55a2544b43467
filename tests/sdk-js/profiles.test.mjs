// Profiles of a tenant's own: made, used, removed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BuildFailedError, Client, NoSuchProfileError, ProfileExistsError, run } from "cloche";

const client = new Client();

test("a profile with a package", async () => {
    const lines = [];
    const made = await client.makeProfile("mine", ["alpha"], {
        env: { COLOUR: "red" },
        limits: { memoryMb: 200 },
        onOutput: (line) => lines.push(line),
    });
    assert.equal(made.state, "ready");
    assert.equal(made.own, true);
    assert.deepEqual(made.requirements, ["alpha"]);
    assert.equal(made.limits.memoryMb, 200);
    assert.ok(lines.some((line) => line.includes("Successfully installed alpha-1.0")));
    const code = "import alpha, os; (alpha.VERSION, os.environ['COLOUR'])";
    const result = await run(code, { profile: "mine", timeoutMs: 20000 });
    assert.equal(result.text, "('1.0', 'red')");
    assert.ok((await client.profiles()).some((profile) => profile.name === "mine"));
    await assert.rejects(client.makeProfile("mine", ["alpha"]), ProfileExistsError);
    await client.deleteProfile("mine");
    await assert.rejects(client.profile("mine"), NoSuchProfileError);
});

test("a package that is not there", async () => {
    await assert.rejects(client.makeProfile("other", ["nowhere"]), (error) => {
        assert.ok(error instanceof BuildFailedError);
        assert.match(error.message, /no wheel of nowhere can be had/);
        return true;
    });
    await client.deleteProfile("other", { force: true });
});
