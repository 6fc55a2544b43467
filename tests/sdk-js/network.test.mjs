// What a sandbox may reach. The server grants pypi.org; nothing here leaves the machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkNotAllowedError, NetworkRuleInvalidError, Sandbox, run } from "cloche";

const TRY = "import socket\nsocket.create_connection(('169.254.169.254', 80))";

test("a policy is asked for, looked at and changed", async () => {
    const box = await Sandbox.create({ network: ["pypi.org:443"] });
    try {
        assert.deepEqual(await box.network(), { allow: ["pypi.org:443"] });
        const result = await box.run(TRY);
        assert.equal(result.error.name, "PermissionError");
        assert.deepEqual(
            result.denied.map(({ op, rule }) => [op, rule]),
            [["connect to 169.254.169.254 port 80", "network:closed-range"]],
        );
        const policy = {
            allow: [{ domain: "pypi.org", ports: [443] }],
            refuse: "unreachable",
            connections: 10,
        };
        assert.equal((await box.setNetwork(policy)).refuse, "unreachable");
        assert.equal(await box.setNetwork("none"), "none");
        assert.equal((await box.update({ network: ["pypi.org"] })).network.allow[0], "pypi.org");
        await assert.rejects(box.setNetwork(["example.com"]), NetworkNotAllowedError);
        await assert.rejects(box.setNetwork(["a..b"]), NetworkRuleInvalidError);
    } finally {
        await box.close();
    }
});

test("of a program", async () => {
    const result = await run(TRY, { network: ["pypi.org:443"] });
    assert.equal(result.denied[0].rule, "network:closed-range");
});
