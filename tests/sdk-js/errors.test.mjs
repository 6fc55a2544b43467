// What goes wrong: refusals of the server, and what the client finds out itself. TABLE: a JSON list of
// the codes that the server's API has.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import * as cloche from "cloche";
import { startProxy } from "./proxy.mjs";

const { ApiError, BadArgumentError, BadReplyError, Client, OlderServerError, errorClasses } =
    cloche;

test("there is one class for each code of the server", () => {
    const codes = JSON.parse(process.env.TABLE);
    assert.deepEqual(Object.keys(errorClasses).sort(), codes.sort());
    const classes = Object.values(errorClasses);
    assert.equal(new Set(classes).size, classes.length);
    for (const [code, Class] of Object.entries(errorClasses)) {
        assert.ok(Class.prototype instanceof ApiError);
        const name = `${code.replace(/(^|_)(.)/g, (_, _1, letter) => letter.toUpperCase())}Error`;
        assert.equal(cloche[name], Class);
        assert.equal(Class.name, name);
    }
});

test("a refusal has the server's words and the request's id", async () => {
    const client = new Client();
    await assert.rejects(client.sandboxes.create({ profile: "gpu" }), (error) => {
        assert.ok(
            error instanceof cloche.UnknownProfileError &&
                error instanceof ApiError &&
                error instanceof Error,
        );
        assert.equal(error.name, "UnknownProfileError");
        assert.deepEqual(
            [error.code, error.status, error.retryable],
            ["unknown_profile", 422, false],
        );
        assert.match(error.message, /there is no profile "gpu".*: choose one/);
        assert.match(error.requestId, /^req_[0-9a-f]+$/);
        return true;
    });
    await assert.rejects(client.sandboxes.create({ limits: { memoryMb: 1e7 } }), cloche.ApiError);
    await assert.rejects(client.sandboxes.create({ limits: { memoryMb: "x" } }), (error) => {
        assert.ok(error instanceof cloche.BadFieldsError);
        assert.deepEqual(error.detail[0].loc, ["body", "limits", "memory_mb"]);
        return true;
    });
    await assert.rejects(
        client.sandboxes.create({ network: ["pypi.org"] }),
        cloche.NetworkNotAllowedError,
    );
    await assert.rejects(client.result("exe_none"), cloche.NoExecutionError);
    await assert.rejects(client.sandboxes.connect("sbx_none"), cloche.NoSuchSandboxError);
});

test("a field that the server does not know is named", async () => {
    await assert.rejects(new Client().sandboxes.create({ colour: "blue" }), (error) => {
        assert.ok(error instanceof cloche.BadFieldsError); // of the same version: not an older server
        assert.deepEqual(error.detail[0].loc, ["body", "colour"]);
        return true;
    });
});

// Stands for servers that are not at hand.
async function withServer(answer, body) {
    const seen = [];
    const server = http.createServer((request, reply) => {
        seen.push(request);
        request.resume();
        answer(request, reply, seen.length);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
        await body(`http://127.0.0.1:${server.address().port}`, seen);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

const refusal = (code, retryable) =>
    JSON.stringify({ error: { code, message: "no", remediation: "wait", retryable } });

test("an older server is named with its version", () =>
    withServer(
        (request, reply) => {
            if (request.url === "/health") reply.end('{"status":"ok","version":"0.0.7"}');
            else reply.writeHead(404, { "X-Request-Id": "req_1" }).end(refusal("no_route", false));
        },
        (baseUrl) =>
            assert.rejects(new Client({ baseUrl }).run("1"), (error) => {
                assert.ok(error instanceof OlderServerError, String(error));
                assert.deepEqual([error.version, error.requestId], ["0.0.7", "req_1"]);
                assert.match(
                    error.message,
                    /cloche 0\.0\.7, which does not know POST \/v1\/run: update it to/,
                );
                return true;
            }),
    ));

test("what is no cloche is told", () =>
    withServer(
        (_, reply) => reply.writeHead(404, { "Content-Type": "text/html" }).end("<h1>nginx</h1>"),
        (baseUrl) =>
            assert.rejects(new Client({ baseUrl }).info(), (error) => {
                assert.ok(error instanceof BadReplyError);
                assert.match(
                    error.message,
                    /answered 404 with something that is not cloche's: check the address/,
                );
                return true;
            }),
    ));

test("Retry-After is heeded, for what did not run", async () => {
    const times = [];
    await withServer(
        (request, reply, n) => {
            times.push(Date.now());
            if (n < 3)
                reply.writeHead(503, { "Retry-After": "1" }).end(refusal("queue_full", true));
            else reply.writeHead(201).end('{"id":"sbx_1"}');
        },
        async (baseUrl, seen) => {
            assert.equal((await new Client({ baseUrl }).sandboxes.create()).id, "sbx_1");
            assert.equal(seen.length, 3);
            const keys = seen.map((request) => request.headers["idempotency-key"]);
            assert.equal(new Set(keys).size, 1);
            assert.ok(keys[0]);
        },
    );
    assert.ok(times[1] - times[0] >= 990 && times[2] - times[1] >= 990);
});

for (const [code, status] of [
    ["sandbox_lost", 503],
    ["client_gone", 503],
    ["kernel_busy", 409],
    ["internal", 500],
]) {
    test(`${code} is not tried again: it may have run`, () =>
        withServer(
            (_, reply) => reply.writeHead(status, { "Retry-After": "0" }).end(refusal(code, true)),
            async (baseUrl, seen) => {
                await assert.rejects(
                    new Client({ baseUrl }).sandboxes.create(),
                    errorClasses[code],
                );
                assert.equal(seen.length, 1);
            },
        ));
}

test("patience has an end", () =>
    withServer(
        (_, reply) =>
            reply.writeHead(429, { "Retry-After": "1" }).end(refusal("too_many_requests", true)),
        async (baseUrl, seen) => {
            const client = new Client({ baseUrl, patienceMs: 1500 });
            await assert.rejects(
                client.info(),
                (error) => error instanceof cloche.TooManyRequestsError && error.retryAfter === 1,
            );
            assert.equal(seen.length, 2);
        },
    ));

test("a server that was replaced does not get the same request again", async () => {
    // It has lost the keys that the one before it knew.
    await withServer(
        (request, reply) => {
            if (request.url === "/v1/info") reply.end('{"uptime_seconds":0}');
            else request.socket.destroy();
        },
        async (baseUrl, seen) => {
            await assert.rejects(
                new Client({ baseUrl }).sandboxes.create(),
                cloche.ConnectionLostError,
            );
            assert.equal(seen.filter(({ url }) => url === "/v1/sandboxes").length, 1);
        },
    );
});

test("options that cannot be meant", () => {
    assert.throws(() => new Client({ baseUrl: "unix:/run/x.sock" }), BadArgumentError);
    assert.throws(
        () => new Client({ baseUrl: "127.0.0.1:8000" }),
        /no address that fetch can reach: use http/,
    );
});

test("a certificate that nobody trusts", async () => {
    const directory = await fs.mkdtemp(path.join(os.tmpdir(), "cloche-"));
    const [key, cert] = ["key", "cert"].map((name) => path.join(directory, name));
    const words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"];
    spawnSync("openssl", [...words, "-keyout", key, "-out", cert]);
    const server = https.createServer({
        key: await fs.readFile(key),
        cert: await fs.readFile(cert),
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
        const client = new Client({ baseUrl: `https://127.0.0.1:${server.address().port}` });
        await assert.rejects(client.info(), (error) => {
            assert.ok(error instanceof cloche.BadCertificateError, String(error));
            assert.match(error.message, /is not trusted \(.*: check the address, or name/);
            return true;
        });
    } finally {
        server.close();
        await fs.rm(directory, { recursive: true });
    }
});

test("a proxy on the way changes nothing", async () => {
    const proxy = await startProxy(process.env.CLOCHE_SERVER);
    const client = new Client({ baseUrl: `${proxy.url}/` });
    assert.equal((await client.info()).name, "cloche");
    assert.ok((await client.profiles()).some((profile) => profile.name === "base"));
    await proxy.close();
});
