// Connections that break: what is resumed, what is sent again, and what is not.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Client, ConnectionLostError, NoServerError } from "cloche";
import { startProxy } from "./proxy.mjs";

let proxy, client, direct, box;
before(async () => {
    proxy = await startProxy(process.env.CLOCHE_SERVER);
    client = new Client({ baseUrl: proxy.url });
    direct = new Client();
    const { id } = await direct.sandboxes.create({ profile: "base" });
    box = await client.sandboxes.connect(id);
});
beforeEach(() => proxy.heal());
after(async () => {
    await (await direct.sandboxes.connect(box.id)).close();
    await proxy.close();
});

const NUMBERS =
    "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.02)\n'end'";
const ALL = Array.from({ length: 40 }, (_, i) => `${i}`);

test("a cell goes on when the connection is lost, and nothing is missing or twice", async () => {
    const lines = [];
    const result = await box.run(NUMBERS, {
        onStdout: (line) => {
            lines.push(line);
            if (["3", "10", "11", "25"].includes(line)) proxy.cut();
        },
    });
    assert.deepEqual(lines, ALL);
    assert.equal(result.stdout, `${ALL.join("\n")}\n`);
    assert.deepEqual([result.text, result.status], ["'end'", "ok"]);
});

test("what the server has forgotten of a long output is in the result", async () => {
    let id;
    const code = "print('on', flush=True)\nfor i in range(300_000): print(f'{i:035}')\n'end'";
    const result = await box.run(code, {
        onEvent: (event) => {
            if (event.type === "start") id = event.id;
        },
        onStdout: async (line) => {
            if (line !== "on") return;
            await proxy.down();
            while (!(await direct.result(id)))
                await new Promise((resolve) => setTimeout(resolve, 20));
            await proxy.up();
        },
    });
    assert.equal(result.stdout.length, 3 + 300_000 * 36);
    assert.deepEqual([result.text, result.stdoutTruncated], ["'end'", false]);
});

test("a command likewise", async () => {
    const lines = [];
    const result = await box.commands.run("for i in $(seq 0 39); do echo $i; sleep 0.02; done", {
        onStdout: (line) => {
            lines.push(line);
            if (["3", "10"].includes(line)) proxy.cut();
        },
    });
    assert.deepEqual(lines, ALL);
    assert.equal(result.exitCode, 0);
});

test("a background command likewise", async () => {
    const command = await box.commands.start("read go; seq 0 39");
    const events = command.stream();
    await events.next();
    proxy.cut();
    await (await direct.sandboxes.connect(box.id)).commands.get(command.id).write("\n");
    let text = "";
    for await (const event of events) if (event.type === "stdout") text += event.text;
    assert.deepEqual(text.trim().split("\n"), ALL);
});

test("a reply that is lost does not make it run twice", async () => {
    for (const bytes of [0, 1, 20, 100, 300, 500]) {
        await box.run("counter = 0");
        proxy.cutAfter(bytes);
        setTimeout(() => proxy.heal(), 100); // the client asks again meanwhile
        const result = await box.run("counter += 1\ncounter");
        assert.equal(result.text, "1", `after ${bytes} bytes`);
        assert.equal((await box.run("counter")).text, "1");
    }
});

test("a sandbox is made once, too", async () => {
    const metadata = { made: `once ${Math.random()}` };
    proxy.cutAfter(0);
    setTimeout(() => proxy.heal(), 100);
    const made = await client.sandboxes.create({ profile: "base", metadata });
    const found = await direct.sandboxes.list({ metadata }).toArray();
    assert.deepEqual(
        found.map(({ id }) => id),
        [made.id],
    );
    await made.close();
});

test("what may have arrived and would happen twice is not sent again", async () => {
    proxy.cutAfter(0);
    const before = proxy.posts;
    await assert.rejects(box.answer("x"), (error) => {
        assert.ok(error instanceof ConnectionLostError);
        assert.match(error.message, /was lost before the reply had come.*check what became of it/);
        return true;
    });
    assert.equal(proxy.posts, before + 1);
});

test("with a signal a lost connection interrupts the cell", async () => {
    const result = await box.run("print('on', flush=True)\nwhile True: pass", {
        signal: new AbortController().signal,
        onStdout: () => proxy.cut(),
    });
    assert.equal(result.status, "interrupted"); // the server says so when it is asked
});

test("a download that breaks off", async () => {
    await box.files.write("large", new Uint8Array(4 << 20));
    proxy.cutAfter(1 << 20);
    const stream = await box.files.stream("large");
    await assert.rejects(new Response(stream).arrayBuffer(), (error) => {
        assert.ok(error instanceof ConnectionLostError, String(error));
        assert.match(error.message, /in the middle of large: download it again/);
        return true;
    });
    proxy.cutAfter(1 << 20);
    setTimeout(() => proxy.heal(), 100);
    assert.equal((await box.files.read("large")).length, 4 << 20); // read() does that itself
});

test("an upload that breaks off is sent again from what can be read twice", async () => {
    proxy.cutAfter(0);
    setTimeout(() => proxy.heal(), 100);
    await box.files.write("again", new Uint8Array(2 << 20).fill(1));
    assert.equal((await box.files.read("again")).length, 2 << 20);
});

test("a server that goes away", async () => {
    const own = await startProxy(process.env.CLOCHE_SERVER);
    const other = new Client({ baseUrl: own.url, reconnectMs: 300 });
    const same = await other.sandboxes.connect(box.id);
    const running = same.run("import time\nprint('on', flush=True)\ntime.sleep(1)", {
        onStdout: () => void own.close(),
    });
    await assert.rejects(running, (error) => {
        assert.ok(error instanceof ConnectionLostError, String(error));
        assert.match(error.message, /while exe_.* ran, and the server did not come back/);
        assert.match(error.executionId, /^exe_/);
        return true;
    });
    await assert.rejects(same.info(), NoServerError);
});

test("nobody is there", async () => {
    const own = await startProxy(process.env.CLOCHE_SERVER);
    await own.close();
    await assert.rejects(new Client({ baseUrl: own.url }).info(), (error) => {
        assert.ok(error instanceof NoServerError);
        assert.match(
            error.message,
            /no server answers at http:.*refused.*: start one with `cloche serve`/i,
        );
        return true;
    });
    await assert.rejects(new Client({ baseUrl: "http://127.0.0.1:9" }).info(), NoServerError);
});
