// Servers inside a sandbox. The server of cloche has the domain ports.localhost for them.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
    BadArgumentError,
    PortBadAnswerError,
    PortClosedError,
    Sandbox,
} from "cloche";

const PORT = 8001;
const SERVER = `
import http.server, json, threading, time
seen, go = [], threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        seen.append([self.command, self.path, dict(self.headers.items()), body])
        if self.path == "/bad":
            self.wfile.write(b"HTTP/1.1 200 OK\\nbad\\n\\n")
            return
        self.send_response(int(self.path[2:5]) if self.path[:2] == "/=" else 200)
        self.send_header("Location", "/there")
        self.send_header("X-Own", "yes")
        self.send_header("X-Cloche-Port", "1")
        self.end_headers()
        if self.path == "/slow":
            self.wfile.write(b"one ")
            go.wait()
            self.wfile.write(b"two")
        else:
            self.wfile.write(json.dumps({"error": {"code": "sandbox_gone", "message": "a lie"}}).encode())
    do_POST = do_PUT = do_PURGE = do_GET
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", ${PORT}), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
`;

async function withServer(body) {
    const box = await Sandbox.create({ profile: "base" });
    try {
        (await box.run(SERVER)).check();
        const last = async () =>
            JSON.parse((await box.run("print(json.dumps(seen[-1]))")).stdout);
        await body(box, last);
    } finally {
        await box.close();
    }
}

test("ports are listed", () =>
    withServer(async (box) => {
        const path = `/v1/sandboxes/${box.id}/ports/${PORT}/`;
        const [port] = await box.ports.list();
        assert.deepEqual([port.port, port.path], [PORT, path]);
        assert.match(port.url, /^http:\/\/8001-sbx[0-9a-f]{32}\.ports\.localhost:\d+\/$/);
        assert.ok(box.ports.url(PORT, "/a?b=c").endsWith(`${path}a?b=c`));
    }));

test("a link opens a server to a browser", () =>
    withServer(async (box) => {
        const [port] = await box.ports.list();
        const link = await box.ports.link(PORT, { ttlSeconds: 60 });
        assert.ok(link.url.startsWith(`${port.url}?cloche_link=`));
        assert.ok(link.expires > Date.now() / 1000 && link.expires < Date.now() / 1000 + 70);
    }));

test("a request and its answer", () =>
    withServer(async (box, last) => {
        const headers = { "X-My": "own" };
        const answer = await box.ports.fetch(PORT, "/a b?x=%20y", { method: "POST", headers, body: "hi" });
        assert.equal(answer.status, 200);
        assert.equal(answer.headers.get("x-own"), "yes");
        const [method, path, seen, body] = await last();
        assert.deepEqual([method, path, body], ["POST", "/a%20b?x=%20y", "hi"]);
        assert.equal(seen["x-my"] ?? seen["X-My"], "own");
        const put = await box.ports.fetch(PORT, "/", { method: "PUT", body: new Uint8Array([65, 66]) });
        assert.equal(put.ok, true);
        assert.equal((await last())[3], "AB");
    }));

for (const status of [302, 404, 429, 500, 503]) {
    test(`what a server inside says with ${status} is an answer, given once`, () =>
        withServer(async (box) => {
            const answer = await box.ports.fetch(PORT, `/=${status}`);
            assert.equal(answer.status, status);
            assert.equal(answer.headers.get("x-cloche-port"), String(PORT));
            assert.match(await answer.text(), /a lie/);
            assert.equal((await box.run("len(seen)")).text, "1");
        }));
}

test("an answer as it comes", () =>
    withServer(async (box) => {
        const answer = await box.ports.fetch(PORT, "/slow");
        const reader = answer.body.getReader();
        const decoder = new TextDecoder();
        assert.equal(decoder.decode((await reader.read()).value), "one ");
        await box.run("go.set()");
        assert.equal(decoder.decode((await reader.read()).value), "two");
        assert.equal((await reader.read()).done, true);
    }));

test("refusals of cloche are thrown", () =>
    withServer(async (box) => {
        await assert.rejects(box.ports.fetch(PORT + 1), PortClosedError);
        await assert.rejects(box.ports.fetch(PORT, "/bad"), PortBadAnswerError);
        for (const port of [0, 65536, 1.5]) {
            await assert.rejects(box.ports.fetch(port), BadArgumentError);
        }
        for (const path of ["../../x", "%2e%2e/execute", "a/..\\..\\x", ".\t./..", "/a/../../b"]) {
            await assert.rejects(box.ports.fetch(PORT, path), BadArgumentError, path);
        }
        assert.equal((await box.run("len(seen)")).text, "1");
    }));
